"""Where is the broker, and who are we there? What mqtts://user:password@host:8883 says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from betimes.language.suggestions import did_you_mean, quoted
from betimes.model.errors import SettingError

PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}  # by scheme
ENCRYPTED = frozenset(("mqtts", "wss"))
WEBSOCKETS = frozenset(("ws", "wss"))
WEBSOCKET_PATH = "/mqtt"
ADDRESS_LETTERS_MAX = 4096
EXAMPLE = "write mqtt://user:password@host:1883"
QUERY = ("client_id",)
_PASSWORD = re.compile("(//[^/:@]*):.*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A broker, and what to say there about oneself."""

    scheme: str = "mqtt"
    host: str = "127.0.0.1"
    port: int = 1883
    path: str = ""  # of websockets; of mqtt and mqtts what follows the /, which some take for a topic
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    client_id: str | None = None

    @property
    def has_websockets(self) -> bool:
        """Say whether MQTT travels in websockets."""
        return self.scheme in WEBSOCKETS

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def read_address(text: str) -> Address:
    """Return what an address says; a mistake in it is told without its password.

    >>> read_address("mqtts://anna:secret@example.net?client_id=door")
    Address(scheme='mqtts', host='example.net', port=8883, path='', user='anna', client_id='door')
    """
    if len(text) > ADDRESS_LETTERS_MAX or not text.isprintable():
        raise SettingError("address", text[:40], "this is too long, or not printable", EXAMPLE)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        problem = "the port is a number from 1 to 65535" if "ort" in str(error) else str(error)
        raise _mistake(text, problem) from None
    if parts.scheme not in PORTS:
        schemes = ", ".join(PORTS)
        raise _mistake(text, f"an address begins with one of {schemes}, and ://")
    if not host:
        raise _mistake(text, "no host is named")
    if port == 0:
        raise _mistake(text, "the port is a number from 1 to 65535")
    path = parts.path.removeprefix("/")
    return Address(
        scheme=parts.scheme,
        host=host,
        port=PORTS[parts.scheme] if port is None else port,
        path=(parts.path if path else WEBSOCKET_PATH) if parts.scheme in WEBSOCKETS else unquote(path),
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        client_id=_client_id(text, parts),
    )


def _client_id(text: str, parts: SplitResult) -> str | None:
    if parts.fragment:
        raise _mistake(text, "what follows # has no meaning here; in a password, # is written %23")
    found = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=16)
    for name, _ in found:
        if name not in QUERY:
            raise _mistake(text, f"{quoted(name)} has no meaning here", did_you_mean(name, QUERY, "names"))
    return found[-1][1] if found else None


def _mistake(text: str, problem: str, hint: str = EXAMPLE) -> SettingError:
    return SettingError("address", _PASSWORD.sub(r"\1:***@", text), problem, hint)
