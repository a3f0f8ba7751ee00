"""Which broker does a command talk to? Options that `pub` and `sub` share, named as Mosquitto's are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from betimes.client.addresses import PORTS, Address, read_address
from betimes.model.errors import SettingError

HostOption = Annotated[
    str | None, typer.Option("--host", "-h", help="Where the broker is: 127.0.0.1.", show_default=False)
]
PortOption = Annotated[
    int | None, typer.Option("--port", "-p", help="1883, or 8883 with --cafile.", metavar="N")
]
UserOption = Annotated[str | None, typer.Option("--username", "-u", help="The user to be.")]
PasswordOption = Annotated[
    str | None,
    typer.Option(
        "--pw",
        "-P",
        help="The user's password. Here others on this machine may see it.",
        envvar="BETIMES_PASSWORD",
        show_default=False,
    ),
]
ClientIdOption = Annotated[
    str | None, typer.Option("--id", "-i", help="The client id; the broker makes one up otherwise.")
]
CafileOption = Annotated[
    Path | None, typer.Option("--cafile", help="Encrypt, and trust the certificates in this file.")
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        "-L",
        help="All in one: mqtt(s)://user:password@host:port/topic, or ws(s)://host:port/path.",
        metavar="URL",
    ),
]
QosOption = Annotated[int, typer.Option("--qos", "-q", help="0, 1 or 2.", metavar="N")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """A broker, how to trust it, and the topics that were named."""

    address: Address
    ca: Path | None
    topics: tuple[str, ...]


def reach(
    topics: list[str],
    *,
    host: str | None,
    port: int | None,
    user: str | None,
    password: str | None,
    client_id: str | None,
    cafile: Path | None,
    url: str | None,
) -> Reach:
    """Return what the options mean together."""
    if url is not None:
        if host is not None or port is not None:
            raise SettingError("--url", url, "says host and port itself", "leave out --host and --port")
        address = read_address(url)
        if address.path and not address.has_websockets:
            topics = [address.path, *topics]
    else:
        scheme = "mqtts" if cafile is not None else "mqtt"
        if port is not None and not 1 <= port <= 65_535:
            raise SettingError("--port", port, "must be between 1 and 65535", "1883 is MQTT's own")
        if host is not None and (not host.strip() or not host.isprintable()):
            raise SettingError("--host", host, "must be a name or an address")
        address = Address(scheme=scheme, host=host or "127.0.0.1", port=port or PORTS[scheme])
    if not topics:
        raise SettingError("--topic", "", "no topic is named", "for example -t traffic/a4")
    user = address.user if user is None else user
    password = address.password if password is None else password
    return Reach(
        address=replace(
            address,
            user=user,
            password=password,
            client_id=address.client_id if client_id is None else client_id,
        ),
        ca=cafile,
        topics=tuple(topics),
    )
