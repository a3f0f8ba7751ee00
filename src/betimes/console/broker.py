"""How is a server started and stopped? `betimes broker`."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from betimes.console.reading import read_text_file
from betimes.console.terminal import results
from betimes.language.link_settings import SECRET_LENGTH_MIN
from betimes.language.server_files import PORT_MAX, read_server_file
from betimes.model.errors import BetimesError, SettingError
from betimes.model.links import NetworkSettings
from betimes.model.servers import ServerSettings
from betimes.qos.strategies import strategy_named

if TYPE_CHECKING:
    from betimes.server.gate import Gate

STORE = "A file for what must survive a restart; without one everything is in memory."
EXAMPLES = """\
[bold]Examples[/bold]

betimes broker --anonymous

betimes broker --passwords broker.passwords --access broker.access --host 0.0.0.0

betimes broker --anonymous --store betimes.db

betimes broker broker.toml --port 0 --verbose
"""


def broker_command(
    config: Annotated[
        Path | None, typer.Argument(help="A configuration file; none is needed.", metavar="[CONFIG.toml]")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Where to listen: 127.0.0.1; 0.0.0.0 is everywhere.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", help="1883; 0 takes one that is free.", metavar="N")
    ] = None,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Let clients in without user name and password.")
    ] = False,
    passwords: Annotated[
        Path | None, typer.Option("--passwords", help="A password file, as `betimes passwd` writes it.")
    ] = None,
    access: Annotated[
        Path | None, typer.Option("--access", help="An access list in Mosquitto's format: who may what.")
    ] = None,
    store: Annotated[Path | None, typer.Option("--store", help=STORE)] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What the broker calls itself: the origin of message ids.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log who comes and goes, on standard error.")
    ] = False,
) -> None:
    """Run an MQTT broker, version 5 and 3.1.1, until it is interrupted or told to end.

    What is given here wins over the file. Nobody comes in unless it is said who: by --passwords, by
    --anonymous, or by both. Without --passwords a user name proves nothing, and gives nobody the rights that
    an access list gives that user.

    With --store, sessions that outlive their connection, what waits for them and retained messages
    survive a restart, also kill -9: nothing is acknowledged before it is in the file. Without it they live in
    memory and end with the broker.

    A file has the same settings (host, port, anonymous, passwords, access, store, name), discreet = true (a
    subscription that is not allowed is refused without saying why), store_sync = "full" (flush each commit to
    the disk, so that it survives a loss of power too), and a table limits: connections,
    packet_size, receive, topic_aliases, subscriptions, sessions, retained, retained_size, queue_size,
    connect_within, keep_alive, session_expiry, client_id_letters. Files it names are looked for beside it.
    """
    written = _settings(config)
    settings = replace(
        written,
        host=written.host if host is None else host,
        port=written.port if port is None else port,
        name=written.name if name is None else name,
        anonymous=written.anonymous or anonymous,
        passwords=written.passwords if passwords is None else str(passwords),
        access=written.access if access is None else str(access),
        store=written.store if store is None else str(store),
    )
    _check(settings)
    gate = open_gate(settings)
    _log_to_stderr(verbose)
    run_broker(settings, gate)


def _check(settings: ServerSettings) -> None:
    """Refuse what the command may have been given, and a file could not have said."""
    if not 0 <= settings.port <= PORT_MAX:
        raise SettingError("--port", settings.port, f"must be between 0 and {PORT_MAX}")
    if not settings.name.strip() or not settings.name.isprintable():
        raise SettingError("--name", settings.name, "must be a printable name")


def open_gate(settings: ServerSettings) -> Gate:
    """Return who may come in, from the files that the settings name."""
    from betimes.server.access import AccessList
    from betimes.server.gate import Gate
    from betimes.server.passwords import PasswordFile

    if not settings.anonymous and settings.passwords is None:
        hint = "name a password file with --passwords, or let everybody in with --anonymous"
        raise BetimesError(f"nobody could connect to this broker\nhint: {hint}")
    users = allowed = None
    if settings.passwords is not None:
        users = PasswordFile.read(read_text_file(Path(settings.passwords)), settings.passwords)
    if settings.access is not None:
        allowed = AccessList.read(read_text_file(Path(settings.access)), settings.access)
    return Gate(anonymous=settings.anonymous, passwords=users, access=allowed, discreet=settings.discreet)


def run_broker(settings: ServerSettings, gate: Gate) -> None:
    """Serve until SIGINT or SIGTERM comes."""
    import uvloop

    from betimes.server import audiences, federation

    audiences.warm_up()
    if settings.network is not None:
        federation.warm_up(settings.network.strategy)
    uvloop.run(_serve(settings, gate))


async def _serve(settings: ServerSettings, gate: Gate) -> None:
    from betimes.server.federation import federate
    from betimes.server.listener import Endpoint, Listener
    from betimes.server.opening import open_hub

    loop = asyncio.get_running_loop()
    told_to_end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told_to_end.set)
    with open_hub(settings, gate, now_s=loop.time(), wall_s=time.time()) as (hub, file):
        if settings.network is not None:
            federate(hub, settings.network, epoch=time.time_ns())
        listener = Listener(hub, file=file, broken=told_to_end.set)
        try:
            await listener.start([Endpoint(host=settings.host, port=settings.port)])
        except OSError as error:
            where = f"{settings.host}:{settings.port}"
            raise BetimesError(f"{where}: cannot listen there ({error.strerror or error})") from None
        try:
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            said = f"{settings.name}: MQTT at {host}:{listener.ports[0]}"
            results().print(said, markup=False, soft_wrap=True)
            sys.stdout.flush()
            await told_to_end.wait()
        finally:
            await listener.stop()
        if listener.failure is not None:
            raise listener.failure


def _settings(config: Path | None) -> ServerSettings:
    if config is None:
        return ServerSettings()
    settings = read_server_file(read_text_file(config), str(config))
    passwords, access, store, network = settings.passwords, settings.access, settings.store, settings.network
    return replace(
        settings,
        network=None if network is None else _with_files(network, config),
        passwords=None if passwords is None else str(config.parent / passwords),
        access=None if access is None else str(config.parent / access),
        store=None if store is None else str(config.parent / store),
    )


def _with_files(network: NetworkSettings, config: Path) -> NetworkSettings:
    """Return network settings with the secret read, and certificates looked for beside the file."""
    secret = network.secret
    if network.secret_file is not None:
        secret = read_text_file(config.parent / network.secret_file).strip()
        if len(secret) < SECRET_LENGTH_MIN:
            raise SettingError("network.secret_file", network.secret_file, "holds no secret worth the name")
    strategy_named(network.strategy)
    links = tuple(
        each if each.authorities is None else replace(each, authorities=str(config.parent / each.authorities))
        for each in network.links
    )
    return replace(network, secret=secret, links=links)


class _Pairs(logging.Formatter):
    """One line of `key=value` pairs for each thing that happened; no client can break out of its line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        message = record.getMessage()
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        when = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        room = record.name.rpartition(".")[2]
        return f"time={when} level={record.levelname.lower()} from={room} message={json.dumps(message)}"


def _log_to_stderr(verbose: bool) -> None:
    writing = logging.StreamHandler()
    writing.setFormatter(_Pairs())
    for name in ("betimes", "asyncio"):  # asyncio tells of what a connection broke
        logger = logging.getLogger(name)
        logger.handlers = [writing]
        logger.setLevel(logging.INFO if verbose and name == "betimes" else logging.WARNING)
        logger.propagate = False
