"""Whose certificates are trusted? The system's, or those in a file."""

from __future__ import annotations

import ssl
from pathlib import Path

from betimes.client.addresses import Address
from betimes.model.errors import SettingError


def tls_for(address: Address, ca: str | Path | None) -> ssl.SSLContext | None:
    """Return how the broker's certificate is checked; None where nothing is encrypted."""
    if not address.is_encrypted:
        if ca is not None:
            raise SettingError("ca", str(ca), f"{address} is not encrypted", "use mqtts:// or wss://")
        return None
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise SettingError("ca", str(ca), f"cannot be read as certificates ({error})") from None
