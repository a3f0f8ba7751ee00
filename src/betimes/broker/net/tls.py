"""TLS contexts of the broker, from certificate files, and what TLS knows of the other side.

TLS 1.2 or newer, with what Python takes for safe. A mistake in a file is told before the server starts.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from betimes.broker.core.connection import Channel
from betimes.model.errors import BetimesError


def tls_context(certificate: str, key: str | None = None, client_ca: str | None = None) -> ssl.SSLContext:
    """Return how to speak TLS with a certificate (and those that signed it) and its key, in PEM files.

    Without `key` it is in the file of the certificate. With `client_ca` clients must show a certificate that
    one in that file has signed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_certificate(context, certificate, key)
    if client_ca is not None:
        _load_authorities(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def link_tls_context(
    authorities: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    *,
    checks_host: bool = True,
) -> ssl.SSLContext:
    """Return how to dial a neighbour: whose certificates to trust, and which one to show, if any.

    Without `checks_host` the certificate need not be that of the host: the link checks the name in it.
    """
    context = ssl.create_default_context()
    if authorities is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load_authorities(context, authorities)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = checks_host
    if certificate is not None:
        _load_certificate(context, certificate, key)
    return context


def channel_of(transport: asyncio.BaseTransport) -> Channel:
    """Return what TLS knows of the connection and of the other side's certificate, if it was verified.

    The names are those of the certificate for hosts or, if it has none, its common name.
    """
    tls = transport.get_extra_info("ssl_object")
    if tls is None:
        return Channel()
    shown = tls.getpeercert() or {}
    names = {value for kind, value in shown.get("subjectAltName", ()) if kind == "DNS"}
    common = {value for part in shown.get("subject", ()) for kind, value in part if kind == "commonName"}
    return Channel(tls.get_channel_binding("tls-unique") or b"", frozenset(names or common))


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    _check_is_file(certificate)
    if key is not None:
        _check_is_file(key)
    try:
        context.load_cert_chain(certificate, key, password=lambda: _refuse_locked(key or certificate))
    except ssl.SSLError as error:
        raise BetimesError(_chain_problem(certificate, key, error)) from None
    except OSError as error:
        named = certificate if key is None else f"{certificate} or {key}"
        raise BetimesError(f"{named}: cannot be read ({error.strerror})") from None


def _load_authorities(context: ssl.SSLContext, authorities: str) -> None:
    _check_is_file(authorities)
    try:
        context.load_verify_locations(authorities)
    except ssl.SSLError:
        hint = "the certificates that sign those of the other side, in PEM: -----BEGIN CERTIFICATE-----"
        raise BetimesError(f"{authorities}: there is no certificate in this file\nhint: {hint}") from None
    except OSError as error:
        raise BetimesError(f"{authorities}: cannot be read ({error.strerror})") from None


def _check_is_file(name: str) -> None:
    if not Path(name).exists():
        raise BetimesError(f"{name}: there is no such file\nhint: certificates and keys are files in PEM")
    if Path(name).is_dir():
        raise BetimesError(f"{name}: is a directory, and a file was expected")


def _refuse_locked(key: str) -> str:
    hint = "remove the password: openssl pkey -in KEY -out NEW, and let only the broker read the new file"
    raise BetimesError(
        f"{key}: the key is locked by a password, which the broker cannot ask for\nhint: {hint}"
    )


def _chain_problem(certificate: str, key: str | None, error: ssl.SSLError) -> str:
    """Return what is wrong with a certificate and its key, in words."""
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key or certificate}: the key does not belong to the certificate in {certificate}"
    if "BEGIN CERTIFICATE" not in Path(certificate).read_text(errors="replace"):
        hint = "a certificate in PEM begins with -----BEGIN CERTIFICATE-----"
        return f"{certificate}: there is no certificate in this file\nhint: {hint}"
    if "PRIVATE KEY" not in Path(key or certificate).read_text(errors="replace"):
        hint = (
            "name the file of the key (--tls-key, or key = in the configuration), which has PRIVATE KEY in it"
        )
        return f"{key or certificate}: there is no key in this file\nhint: {hint}"
    return f"{certificate}: this certificate, or its key, cannot be used ({error.reason or error})"
