"""Options that `betimes pub` and `sub` share, with the names of mosquitto_pub and mosquitto_sub."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from betimes.client.addresses import PORTS, Address, read_address
from betimes.model.errors import SettingError

HostOption = Annotated[
    str | None,
    typer.Option("--host", "-h", help="The host of the broker. Default: 127.0.0.1.", show_default=False),
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port", "-p", help="The port of the broker. Default: 1883, or 8883 with --cafile.", metavar="N"
    ),
]
UserOption = Annotated[str | None, typer.Option("--username", "-u", help="The user name.")]
PasswordOption = Annotated[
    str | None,
    typer.Option(
        "--pw",
        "-P",
        help="The password. Other users of this machine can see it in the process list.",
        envvar="BETIMES_PASSWORD",
        show_default=False,
    ),
]
ClientIdOption = Annotated[
    str | None, typer.Option("--id", "-i", help="The client id. Default: the broker assigns one.")
]
CafileOption = Annotated[
    Path | None, typer.Option("--cafile", help="Use TLS, and trust the CA certificates in this file.")
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        "-L",
        help="The address as a URL: mqtt(s)://user:password@host:port/topic, or ws(s)://host:port/path.",
        metavar="URL",
    ),
]
QosOption = Annotated[int, typer.Option("--qos", "-q", help="0, 1 or 2.", metavar="N")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The address of a broker, its CA file, and the topics."""

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
    """Return the broker and the topics that the options describe."""
    if url is not None:
        if host is not None or port is not None:
            raise SettingError("--url", url, "has host and port already", "leave out --host and --port")
        address = read_address(url)
        if address.path and not address.has_websockets:
            topics = [address.path, *topics]
    else:
        scheme = "mqtts" if cafile is not None else "mqtt"
        if port is not None and not 1 <= port <= 65_535:
            raise SettingError("--port", port, "must be between 1 and 65535", "MQTT uses 1883")
        if host is not None and (not host.strip() or not host.isprintable()):
            raise SettingError("--host", host, "must be a host name or an address")
        address = Address(scheme=scheme, host=host or "127.0.0.1", port=port or PORTS[scheme])
    if not topics:
        raise SettingError("--topic", "", "there is no topic", "for example -t traffic/a4")
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
