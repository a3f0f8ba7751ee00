"""`betimes peer`: run one peer of an overlay without brokers."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from betimes.cli.broker import check_addresses, prepare, read_access_control, serve
from betimes.language.files.overlay_file import (
    ATTRIBUTES_MAX,
    HOPS_MAX,
    LEVELS_MAX,
    read_attribute_range,
    read_delay,
    read_overlay_file,
    read_share,
)
from betimes.language.filters.parse import parse_filter
from betimes.language.quantities import read_duration_s
from betimes.model.errors import BetimesError, SettingError, TextError
from betimes.model.filters import Filter
from betimes.model.overlay_settings import Metric, OverlaySettings
from betimes.model.server_settings import ServerSettings
from betimes.terminal.broker_options import Access, Anonymous, Passwords, TlsCertificate, TlsKey, Verbose
from betimes.terminal.files import read_text_file
from betimes.terminal.server_settings import read_secret
from betimes.terminal.serving import log_to_stderr
from betimes.terminal.terminal import JsonOption, results

if TYPE_CHECKING:
    from betimes.broker.access.authentication import AccessControl
    from betimes.broker.net.listener import Endpoint, Listener
    from betimes.broker.peers.overlay import PeerOverlay
    from betimes.broker.peers.settings import PeerPlan

LEVELS_USUAL, LENGTH_USUAL = 10, 60
HOPS_USUAL, TIME_S_USUAL = 10.0, 1.0
TIME_S_OF_HOP = 0.001  # the step by which a peer relaxes a bound that no parent can meet
CYCLE_S_MIN, CYCLE_S_MAX = 0.05, 60.0
PLACES_MAX = 1_000
EXAMPLES = """\
[bold]The file[/bold]

All peers of an overlay share one file: attributes = \\["temperature:0..100", "wind:0..40"]; optionally \
levels (how often each range is halved), metric ("hops" or "time"), join (addresses), secret_file, tls, \
authorities. Options win over the file. Paths are relative to the file.

[bold]The status of a peer[/bold]

Parents, children, dz-expressions, measured delays and on-time share, as retained JSON: \
betimes sub -p 4002 -t '$betimes/peer/#'

[bold]Examples[/bold]

betimes peer --attribute temperature:0..100 --publish "temperature >= 0" --anonymous --port 4001

betimes peer --attribute temperature:0..100 --subscribe "temperature > 30" --max-delay 3 \
--anonymous --port 4002 --join 127.0.0.1:4001

betimes pub -p 4001 -t weather -m hot --attribute temperature=35

betimes peer overlay.toml --subscribe "wind > 10" --max-delay 200ms --bandwidth 5% \
--passwords peer.passwords --host 0.0.0.0 --advertise 192.0.2.7:4003
"""

Config = Annotated[
    Path | None, typer.Argument(help="An optional file that all peers share.", metavar="[OVERLAY.toml]")
]
Attributes = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute", help="A dimension of the event space. May be repeated.", metavar="NAME:LOW..HIGH"
    ),
]
Levels = Annotated[
    int | None, typer.Option("--levels", help="How often each range is halved.", min=1, max=LEVELS_MAX)
]
MetricOption = Annotated[
    Metric | None, typer.Option("--metric", help="The unit of delays: hops, or measured time.")
]
Subscribe = Annotated[
    list[str] | None,
    typer.Option(
        "--subscribe", help="A filter to subscribe to; default: the filters of clients. May be repeated."
    ),
]
Publish = Annotated[
    list[str] | None,
    typer.Option(
        "--publish",
        help="A filter of what clients publish here; default: everything, once a client publishes.",
    ),
]
MaxDelay = Annotated[
    str | None, typer.Option("--max-delay", help="Delay bound: 3 (hops), or 250ms.", metavar="DELAY")
]
Bandwidth = Annotated[
    str,
    typer.Option("--bandwidth", help="Share of all events that may arrive unmatched, for a better place."),
]
Join = Annotated[
    list[str] | None,
    typer.Option("--join", help="A peer of the overlay to join. May be repeated.", metavar="HOST:PORT"),
]
Places = Annotated[
    int, typer.Option("--places", help="The largest number of children.", min=1, max=PLACES_MAX)
]
Host = Annotated[str, typer.Option("--host", help="The address to listen at, for peers and clients.")]
Port = Annotated[
    int, typer.Option("--port", "-p", help="The port to listen at; 0 takes a free one.", min=0, max=65_535)
]
Advertise = Annotated[
    str | None,
    typer.Option("--advertise", help="The address to tell other peers, if it differs.", metavar="HOST:PORT"),
]
Secret = Annotated[Path | None, typer.Option("--secret", help="A file with the secret that all peers share.")]
Authorities = Annotated[
    Path | None, typer.Option("--tls-authorities", help="The CA certificates of peers (PEM).")
]
Cycle = Annotated[
    str, typer.Option("--cycle", help="How often a peer reviews its parents and children.", metavar="TIME")
]


def peer_command(
    config: Config = None,
    attribute: Attributes = None,
    levels: Levels = None,
    metric: MetricOption = None,
    subscribe: Subscribe = None,
    publish: Publish = None,
    max_delay: MaxDelay = None,
    bandwidth: Bandwidth = "10%",
    join: Join = None,
    places: Places = 10,
    host: Host = "127.0.0.1",
    port: Port = 1883,
    advertise: Advertise = None,
    secret: Secret = None,
    anonymous: Anonymous = False,
    passwords: Passwords = None,
    access: Access = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_authorities: Authorities = None,
    cycle: Cycle = "500ms",
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Run a peer of an overlay without brokers, until Ctrl-C or SIGTERM.

    Use peers where no machine can serve as a broker. Peers with similar subscriptions feed each other, and
    peers with tight delay bounds stand close to publishers. All peers need the same --attribute options in
    the same order; a peer with other ones is refused. Any MQTT client publishes and subscribes at its peer
    as at a broker; events are routed by their attributes, not by their topic.

    A peer that listens on more than this machine (--host) needs a --secret, the same at all peers.
    With --json, the peer prints its status as a line of JSON whenever it changes.
    """
    shared = _shared(config, attribute, join, levels=levels, metric=metric)
    shared = replace(
        shared,
        secret_file=_name(secret) or shared.secret_file,
        tls=shared.tls or tls_certificate is not None,
        authorities=_name(tls_authorities) or shared.authorities,
    )
    settings = ServerSettings(
        host=host,
        port=port,
        anonymous=anonymous,
        passwords=_name(passwords),
        access=_name(access),
        certificate=_name(tls_certificate),
        key=_name(tls_key),
    )
    access_control = read_access_control(settings)
    plan = _plan(shared, advertise or "", max_delay, _share(bandwidth), places, _cycle_s(cycle))
    plan = replace(plan, wanted=_filters(subscribe), published=_filters(publish))
    plan = replace(plan, secret=_secret(shared.secret_file, host))
    log_to_stderr(verbose)
    _run(plan, settings, access_control, as_json=as_json)


def _name(file: Path | None) -> str | None:
    return None if file is None else str(file)


def _shared(
    config: Path | None,
    attributes: list[str] | None,
    join: list[str] | None,
    *,
    levels: int | None,
    metric: Metric | None,
) -> OverlaySettings:
    """Return the settings that all peers share, from the file and the options; options win."""
    written = OverlaySettings()
    if config is not None:
        written = read_overlay_file(read_text_file(config), str(config))
        secret, authorities = (
            None if name is None else str(config.parent / name)
            for name in (written.secret_file, written.authorities)
        )
        written = replace(written, secret_file=secret, authorities=authorities)
    return replace(
        written,
        ranges=tuple(map(read_attribute_range, attributes)) if attributes else written.ranges,
        levels=levels or written.levels,
        metric=metric or written.metric,
        join=tuple(join) if join else written.join,
    )


def _filters(texts: list[str] | None) -> tuple[Filter, ...] | None:
    return tuple(map(parse_filter, texts)) if texts else None


def _share(text: str) -> float:
    try:
        return read_share(text)
    except TextError as error:
        raise SettingError("--bandwidth", text, error.problem, error.hint) from None


def _cycle_s(text: str) -> float:
    cycle_s = read_duration_s(text)
    if not CYCLE_S_MIN <= cycle_s <= CYCLE_S_MAX:
        raise SettingError("--cycle", text, "must be between 50ms and 60s")
    return cycle_s


def _secret(file: str | None, host: str) -> str:
    """Return the shared secret; peers that listen only on loopback need none."""
    if file is not None:
        return read_secret(Path(file), "--secret")
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        hint = "openssl rand -hex 16 > overlay.secret, and pass the same file to all peers"
        raise SettingError("--host", host, "needs a --secret, or any machine could join", hint)
    return ""


def _plan(
    written: OverlaySettings,
    address: str,
    max_delay: str | None,
    false_share_max: float,
    places: int,
    cycle_s: float,
) -> PeerPlan:
    from betimes.broker.peers.settings import Agreement, PeerPlan, split_address
    from betimes.matching.dz.spaces import Dimension, Space
    from betimes.peers.settings import live_settings

    if not 0 < len(written.ranges) <= ATTRIBUTES_MAX:
        hint = "for example --attribute temperature:0..100, the same at all peers"
        raise SettingError("--attribute", len(written.ranges), f"needs 1 to {ATTRIBUTES_MAX} of them", hint)
    for each in (*written.join, *([address] if address else [])):
        split_address(each)
    delay_max, metric = _delay(max_delay, written.metric)
    dimensions = tuple(
        [Dimension(attribute=each.attribute, low=each.low, high=each.high) for each in written.ranges]
    )
    levels = written.levels or max(min(LEVELS_USUAL, LENGTH_USUAL // len(dimensions)), 1)
    step = 1.0 if metric is Metric.HOPS else TIME_S_OF_HOP
    return PeerPlan(
        address=address,
        agreement=Agreement(space=Space(dimensions=dimensions, levels=levels), metric=metric),
        settings=live_settings(places, false_share_max, yield_step=step),
        join=written.join,
        delay_max=delay_max,
        cycle_s=cycle_s,
        tls=written.tls,
        authorities=written.authorities,
    )


def _delay(text: str | None, stated: Metric | None) -> tuple[float, Metric]:
    """Return the delay bound and its unit."""
    if text is None:
        metric = stated or Metric.HOPS
        return (HOPS_USUAL if metric is Metric.HOPS else TIME_S_USUAL), metric
    try:
        delay_max, metric = read_delay(text)
    except TextError as error:
        raise SettingError("--max-delay", text, error.problem, error.hint) from None
    if stated is not None and metric is not stated:
        example = f"a number up to {HOPS_MAX:.0f}" if stated is Metric.HOPS else "for example 250ms"
        raise SettingError("--max-delay", text, f"this overlay measures delays in {stated}", example)
    return delay_max, metric


def _run(plan: PeerPlan, settings: ServerSettings, access_control: AccessControl, *, as_json: bool) -> None:
    import uvloop

    from betimes.broker.server import endpoints

    places = endpoints(settings)
    check_addresses(settings, places)
    prepare()
    uvloop.run(_serve(plan, settings, access_control, places, as_json=as_json))


async def _serve(
    plan: PeerPlan,
    settings: ServerSettings,
    access_control: AccessControl,
    places: list[Endpoint],
    *,
    as_json: bool,
) -> None:
    from betimes.broker.server import Server

    server = Server(settings, access_control, places=places, plan=plan)
    await serve(
        server,
        lambda: _say_ready(server.hub.name, server.places[0].spoken, as_json=as_json),
        lambda: _tell(server.overlay, server.listener, as_json=as_json),
    )
    if server.refusals:
        raise BetimesError(f"another peer refused this one: {server.refusals[0]}")


def _say_ready(address: str, spoken: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"address": address, "ready": True}) + "\n")
    else:
        results().print(f"peer {address}: {spoken}, for peers and clients", markup=False, soft_wrap=True)
    sys.stdout.flush()


async def _tell(overlay: PeerOverlay, listener: Listener, *, as_json: bool) -> None:
    """Publish the status of the peer, and print it with --json."""
    from betimes.broker.peers.status import EVERY_S, StatusPublisher

    telling = StatusPublisher(overlay, listener.hub.publishing.announce)
    while True:
        told = telling.tick(listener.now_s())
        listener.flush()
        if told is not None and as_json:
            sys.stdout.write(told.decode() + "\n")
            sys.stdout.flush()
        await asyncio.sleep(EVERY_S)
