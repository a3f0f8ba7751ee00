"""`betimes broker`: run one MQTT broker."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from betimes.language.files.server_file import PORT_MAX, SHARE_MIN
from betimes.language.quantities import read_duration_s
from betimes.model.errors import BetimesError, SettingError, TextError
from betimes.model.server_settings import ServerSettings, TelemetrySettings
from betimes.terminal import broker_options
from betimes.terminal.files import read_text_file
from betimes.terminal.server_settings import WAYS_IN, read_secret, settings_from
from betimes.terminal.serving import address_text, check_free, log_to_stderr, naming
from betimes.terminal.terminal import results

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from betimes.broker.access.authentication import AccessControl
    from betimes.broker.net.listener import Endpoint
    from betimes.broker.server import Server

FILES_BESIDE = 100  # open files that are not client connections
# Thresholds of the garbage collector, for each generation: a broker makes few reference cycles.
GARBAGE_AFTER = (20_000, 20, 100)
METRICS_PORT = "--metrics-port"
EXAMPLES = """\
[bold]The file[/bold]

host, port, certificate, key, anonymous, passwords, access, accounts, store, metrics_port, name, \
control_secret_file: as the options above; \
store_sync = "full": flush each commit to the disk, so that it survives a power loss too; client_ca: \
clients must present a certificate signed by one in this file; discreet = true: the broker rejects a \
subscription that is not allowed without a reason; sys_every = "10s": how often the broker updates its \
statistics below $SYS, 0s for never. Paths are relative to the file.

\\[\\[listen]]: one more listener: host, port, kind ("mqtt" or "websocket"), certificate, key, client_ca. \
The broker then listens at the top-level host and port only if the top level names a port or a certificate.

\\[limits]: connections, connection_rate and publish_rate (per second), packet_size, \
receive, topic_aliases, subscriptions, sessions, retained, retained_size, queue_size, queues_size, memory, \
user_memory, connect_within, keep_alive, session_expiry, client_id_letters.

\\[telemetry]: the telemetry that the broker writes: directory, share (of all events), every (how often it \
writes a file), size (of all files; the broker deletes the oldest).

\\[network]: links to other brokers: secret or secret_file (the same at all brokers), named_certificates \
(brokers show certificates with their names), strategy, queue, queue_size, beat, lost_after; and for each \
neighbour \\[\\[network.links]]: to (its name), address (left out if the neighbour dials), tls, authorities, \
certificate and key (to show to the neighbour), rate (the highest send rate), speed (assumed until \
the broker has measured it).

\\[buffer]: the replay buffer, from which subscribers resume: keep (true), size (64MB), messages, overwrite \
(lrp, random, pwp, value-decay, disconnection-aware), outage (how long subscribers are away), fetch (topics \
to fetch from other brokers even without local demand), fetch_price, fetch_within; and \
\\[\\[buffer.partitions]]: pattern, filter, and size, messages and overwrite of the partition.

[bold]Examples[/bold]

betimes broker --anonymous

betimes broker --passwords broker.passwords --access broker.access --host 0.0.0.0

betimes broker --anonymous --store betimes.db

betimes broker --passwords broker.passwords --tls-certificate broker.crt --tls-key broker.key

betimes broker broker.toml --port 0 --verbose
"""


def broker_command(
    config: broker_options.Config = None,
    host: broker_options.Host = None,
    port: broker_options.Port = None,
    tls_certificate: broker_options.TlsCertificate = None,
    tls_key: broker_options.TlsKey = None,
    anonymous: broker_options.Anonymous = False,
    passwords: broker_options.Passwords = None,
    access: broker_options.Access = None,
    accounts: broker_options.Accounts = None,
    store: broker_options.StoreOption = None,
    metrics_port: broker_options.MetricsPort = None,
    telemetry: broker_options.Telemetry = None,
    telemetry_share: broker_options.TelemetryShare = None,
    telemetry_every: broker_options.TelemetryEvery = None,
    name: broker_options.Name = None,
    control_secret: broker_options.ControlSecret = None,
    verbose: broker_options.Verbose = False,
) -> None:
    """Run an MQTT broker, version 5 and 3.1.1, until Ctrl-C or SIGTERM.

    Clients are rejected unless you pass --passwords, --anonymous, or both. Without --passwords the broker
    ignores user names: every client has the rights of a client without a user name.

    Options win over the configuration file. On SIGHUP the broker reads passwords, access list,
    accounts and certificates again; if one of them has a mistake, it keeps all of the old ones.

    With --store, durable sessions, their queued messages and retained messages survive a restart, even
    kill -9: the broker acknowledges nothing before it is in the file. Without it they are in memory only and
    end with the broker.
    """
    if tls_key is not None and tls_certificate is None:
        raise SettingError("--tls-key", str(tls_key), "needs --tls-certificate")
    written = settings_from(config)
    settings = replace(
        written,
        host=written.host if host is None else host,
        port=written.port if port is None else port,
        name=written.name if name is None else name,
        anonymous=written.anonymous or anonymous,
        passwords=written.passwords if passwords is None else str(passwords),
        access=written.access if access is None else str(access),
        accounts=written.accounts if accounts is None else str(accounts),
        store=written.store if store is None else str(store),
        metrics_port=written.metrics_port if metrics_port is None else metrics_port,
        telemetry=_telemetry(written.telemetry, telemetry, telemetry_share, telemetry_every),
    )
    if tls_certificate is not None:
        key = None if tls_key is None else str(tls_key)
        settings = replace(settings, certificate=str(tls_certificate), key=key)
    if control_secret is not None:
        secret = read_secret(control_secret, "--control-secret")
        settings = replace(settings, control_secret=secret, control_secret_file=str(control_secret))
    _check(settings)
    access_control = read_access_control(settings)
    log_to_stderr(verbose)
    run_broker(settings, access_control)


def _telemetry(
    written: TelemetrySettings | None, directory: Path | None, share: float | None, every: str | None
) -> TelemetrySettings | None:
    """Return the telemetry settings from the file and the options; options win."""
    if share is not None and not SHARE_MIN <= share <= 1.0:
        raise SettingError("--telemetry-share", share, f"must be between {SHARE_MIN} and 1")
    if directory is not None:
        written = TelemetrySettings(directory=str(directory))
    for option, value in (("--telemetry-share", share), ("--telemetry-every", every)):
        if value is not None and written is None:
            raise SettingError(option, value, "needs --telemetry")
    if written is not None and share is not None:
        written = replace(written, share=share)
    if written is not None and every is not None:
        written = replace(written, every_s=read_every(every))
    return written


def read_every(text: str) -> float:
    """Return the value of `--telemetry-every` in seconds."""
    try:
        every_s = read_duration_s(text)
    except TextError as error:
        raise SettingError("--telemetry-every", text, error.problem, "for example 10s") from None
    if not 1.0 <= every_s < math.inf:
        raise SettingError("--telemetry-every", text, "must be 1s or more")
    return every_s


def _check(settings: ServerSettings) -> None:
    """Check the values that only options can set; the file reader has checked the others."""
    for option, value in (("--port", settings.port), ("--metrics-port", settings.metrics_port)):
        if value is not None and not 0 <= value <= PORT_MAX:
            raise SettingError(option, value, f"must be between 0 and {PORT_MAX}", "0 takes a free port")
    if settings.network is not None and settings.name in [link.to for link in settings.network.links]:
        raise SettingError("network.links", settings.name, "a broker is not its own neighbour")
    if not settings.name.strip() or not settings.name.isprintable():
        raise SettingError("--name", settings.name, "must be a printable name")


def read_access_control(settings: ServerSettings) -> AccessControl:
    """Return the access control that the settings and their files describe."""
    from betimes.broker.access.setting_files import open_access

    if not settings.anonymous and settings.passwords is None:
        raise BetimesError(f"this broker would reject every client\nhint: {WAYS_IN}")
    return open_access(settings, read_text_file)


def run_broker(settings: ServerSettings, access_control: AccessControl) -> None:
    """Serve until SIGINT or SIGTERM."""
    import uvloop

    from betimes.broker.server import endpoints

    places = endpoints(settings)
    check_addresses(settings, places)
    prepare([] if settings.network is None else [settings.network.strategy])
    _allow_connections(settings.limits.connections_max)
    uvloop.run(_serve(settings, access_control, places))


def check_addresses(settings: ServerSettings, places: Sequence[Endpoint]) -> None:
    """Raise an error for an address that is in use, before the kernels are compiled."""
    for place in places:
        check_free(place.host, place.port)
    if settings.metrics_port is not None:
        check_free(settings.host, settings.metrics_port, METRICS_PORT)


def prepare(strategies: Sequence[str] = ()) -> None:
    """Load and compile everything before the first client connects."""
    from betimes.broker.warm_up import prepare_kernels

    prepare_kernels(strategies)
    gc.collect()
    gc.set_threshold(*GARBAGE_AFTER)
    gc.freeze()  # loaded modules stay: scanning them for garbage would stop the broker for long


def _allow_connections(count: int) -> None:
    """Raise the limit of open files to what the connections may need, or as far as the system allows."""
    wanted = count + FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        log.warning(
            "the limit is %d connections, but the system allows only %d open files: raise ulimit -n",
            count,
            hard,
        )


async def _serve(settings: ServerSettings, access_control: AccessControl, places: list[Endpoint]) -> None:
    from betimes.broker.server import Server

    server = Server(settings, access_control, places=places)
    told_to_reload = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, told_to_reload.set)
    await serve(server, lambda: _say_where(server), lambda: _reload_whenever(told_to_reload, server))


async def serve(
    server: Server, say_ready: Callable[[], None], beside: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Serve until SIGINT or SIGTERM, with a task beside; explain an address that is not available."""
    from betimes.broker.server import AddressError

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.ended.set)
    try:
        async with server:
            say_ready()
            task = loop.create_task(beside())
            await server.ended.wait()
            task.cancel()
    except AddressError as error:
        with naming(error.host, error.port, METRICS_PORT if error.is_metrics else "--port"):
            raise error.reason from None


def _say_where(server: Server) -> None:
    """Print the addresses at which the broker listens."""
    settings = server.settings
    for place, port in zip(server.places, server.ports, strict=True):
        _say(f"{settings.name}: {place.spoken} at {address_text(place.host, port)}")
    if server.metrics_port is not None:
        _say(f"{settings.name}: metrics at http://{address_text(settings.host, server.metrics_port)}/metrics")
    sys.stdout.flush()


async def _reload_whenever(told: asyncio.Event, server: Server) -> None:
    """Read the files again on every SIGHUP; if one has a mistake, keep all of the old ones."""
    while True:
        await told.wait()
        told.clear()
        try:
            access_control = await asyncio.to_thread(read_access_control, server.settings)
            cut_off = await server.reload(access_control)
        except BetimesError as error:
            log.error("the files were not reloaded, the old ones stay in force: %s", error)
            continue
        log.warning("the files were reloaded; clients disconnected: %d", cut_off)


def _say(text: str) -> None:
    results().print(text, markup=False, soft_wrap=True)
