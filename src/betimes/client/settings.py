"""The options of `connect` and `connect_sync`, checked before anything is sent."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from betimes.client.addresses import ENCRYPTED, Address, read_address
from betimes.client.request import Duration, advertise, checked_text, duration_text
from betimes.language.quantities import read_duration_s
from betimes.model.errors import SettingError

ADDRESSES_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A broker, and how its certificate is checked; None where nothing is encrypted."""

    address: Address
    tls: ssl.SSLContext | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How a client connects."""

    places: tuple[Place, ...]
    timeout_s: float
    reconnect_s: float = 0.0
    session_s: float = 0.0
    advertised: tuple[tuple[str, str], ...] = ()


def read_addresses(
    address: str | Sequence[str], *, client_id: str | None, user: str | None, password: str | None
) -> list[Address]:
    """Return the brokers; what is given by name wins over the address."""
    if not isinstance(address, str | Sequence):
        raise SettingError("address", address, "must be a text, or several", "mqtt://host")
    for name, given in (("client_id", client_id), ("user", user), ("password", password)):
        if given:
            checked_text(name, given)
    addresses = [address] if isinstance(address, str) else list(address)
    if not 1 <= len(addresses) <= ADDRESSES_MAX:
        raise SettingError("address", len(addresses), f"name between 1 and {ADDRESSES_MAX} brokers")
    found = []
    for each in addresses:
        read = read_address(checked_text("address", each))
        if read.path and not read.has_websockets:
            problem, hint = "a topic has no place here", "name it in subscribe or publish"
            raise SettingError("address", str(read), problem, hint)
        found.append(
            replace(
                read,
                client_id=read.client_id if client_id is None else client_id,
                user=read.user if user is None else user,
                password=read.password if password is None else password,
            )
        )
    return found


def read_settings(
    addresses: Sequence[Address],
    *,
    ca: str | Path | None = None,
    timeout: Duration = "10s",
    reconnect: Duration = "0s",
    session: Duration = "0s",
    advertised: Mapping[str, str] | None = None,
) -> ClientSettings:
    """Return how to connect to one of these brokers; a mistake is a `SettingError` or a `TextError`."""
    if any(each.password is not None and each.user is None for each in addresses):
        raise SettingError("password", "***", "a password needs a user name")
    reconnect_s = read_duration_s(duration_text("reconnect", reconnect))
    timeout_s = read_duration_s(duration_text("timeout", timeout))
    if not timeout_s:
        raise SettingError("timeout", timeout, "must be more than 0")
    session_s = read_duration_s(duration_text("session", session))
    own_id = f"betimes-{secrets.token_hex(8)}" if session_s else None  # a session needs a client id
    return ClientSettings(
        places=tuple(
            Place(address=replace(each, client_id=each.client_id or own_id), tls=tls_for(each, ca))
            for each in addresses
        ),
        timeout_s=timeout_s,
        reconnect_s=reconnect_s,
        session_s=session_s,
        advertised=tuple(advertise(advertised)),
    )


def tls_for(
    address: Address,
    ca: str | Path | None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
) -> ssl.SSLContext | None:
    """Return how the broker's certificate is checked, by the system's authorities or those in the file `ca`.

    `cert` and `key` are the files of the client's own certificate. None where nothing is encrypted.
    """
    if address.scheme not in ENCRYPTED:
        for name, file in (("ca", ca), ("cert", cert), ("key", key)):
            if file is not None:
                raise SettingError(name, str(file), f"{address} is not encrypted", "use mqtts:// or wss://")
        return None
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise SettingError("ca", str(ca), f"cannot be read as certificates ({error})") from None
    if cert is None:
        if key is not None:
            raise SettingError("key", str(key), "is the key of a certificate, which is missing", "add cert")
        return context
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise SettingError("cert", str(cert), f"cannot be read with its key ({error})") from None
    return context
