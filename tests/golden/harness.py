"""How do golden scripts reach the inside of Betimes? Only through this file.

Whoever changes the inside changes this file, and neither scripts nor recorded texts. A world has brokers (and
peers), sockets of clients, links, and a clock that scripts move. The harness does what the live driver does
around a broker: it hands in bytes and time, commits before it writes, lets go on who was blocked. Every
byte that a connection yields is written down, by connection and moment.

Nothing is left to chance: `pinned` settles what brokers draw, and they start on the clock of the world.
Between connections of one moment there is no order; they are written down by name.
"""

from __future__ import annotations

import heapq
import logging
import random
import secrets
import time
from collections.abc import Callable, Iterator, MutableSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
from tests.broker.neighbours import auth, counted_nonces
from tests.golden.packets import puback, pubcomp, pubrec, shown

from betimes import __version__
from betimes.broker.admission.admission import worked_out
from betimes.broker.composition import Composition, compose, join_overlay, open_store
from betimes.broker.core.connection import Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.links.broker_link import BrokerLink
from betimes.broker.links.handshake import Side
from betimes.broker.links.link_base import NeighbourLink
from betimes.broker.net.background import promised_subscriptions
from betimes.broker.observe.prometheus import exposition
from betimes.broker.observe.statistics import gathered
from betimes.broker.observe.sys_topics import SysTopics
from betimes.broker.observe.telemetry_log import LOOK_EVERY_S, TelemetryLog, TelemetryTopics
from betimes.broker.peers.link import PeerLink
from betimes.broker.peers.overlay import PeerCall, PeerOverlay
from betimes.broker.peers.settings import Agreement, PeerPlan
from betimes.broker.peers.status import StatusPublisher
from betimes.broker.storage.sqlite_file import StoreFile
from betimes.cli.broker import read_access_control
from betimes.language.filters.parse import parse_filter
from betimes.matching.dz.spaces import Dimension, Space
from betimes.model.network_settings import LinkTerms
from betimes.model.overlay_settings import Metric
from betimes.model.server_settings import ServerSettings
from betimes.peers.settings import live_settings
from betimes.terminal.server_settings import settings_from

START_S = 100.0  # on brokers' clocks, when a script begins
WALL_AHEAD_S = 1_700_000_000.0  # the wall clock, when those show 0
TICK_S = 0.25
TURNS_MAX = 10_000  # of one moment: then something goes round in circles
END = b""  # the other side has hung up


class _LogToWorld(logging.Handler):
    """Has what brokers complain of written down, without the name of who logs it."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.warn(f"{record.levelname}: {record.getMessage()}")


@contextmanager
def logging_to(world: World) -> Iterator[None]:
    """Have a world write down what brokers complain of."""
    logger, handler = logging.getLogger("betimes"), _LogToWorld(world)
    passes_on, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = passes_on


class _InOrder(MutableSet[Any]):
    """A set that is iterated in the order in which it was filled, whatever the seed of hashes is."""

    def __init__(self) -> None:
        self._members: dict[Any, None] = {}

    def __contains__(self, member: object) -> bool:
        return member in self._members

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def add(self, value: Any) -> None:
        self._members[value] = None

    def discard(self, value: Any) -> None:
        self._members.pop(value, None)


class _Settled(random.Random):
    """Draws the same numbers in every run, where nobody asked for a seed."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(0 if seed is None else seed)


@contextmanager
def pinned(world: World) -> Iterator[None]:
    """Let nothing that a broker draws by itself differ between runs; wall clocks go with the world's."""
    numbers = count(1)

    def token_hex(size: int = 32) -> str:
        return f"{next(numbers):0{2 * size}x}"

    def wall_s() -> float:
        return WALL_AHEAD_S + world.now_s

    with (
        mock.patch.object(secrets, "token_hex", token_hex),
        mock.patch.object(secrets, "token_bytes", lambda size=32: bytes.fromhex(token_hex(size))),
        mock.patch.object(random, "Random", _Settled),
        mock.patch.object(time, "time", wall_s),
    ):
        yield


@dataclass(eq=False)
class Site:
    """One broker, or peer, with what its driver keeps beside it."""

    name: str
    parts: Composition
    config: Path | None = None
    file: StoreFile | None = None
    system: SysTopics | None = None
    settings: ServerSettings | None = None
    status: StatusPublisher | None = None
    logbook: TelemetryLog | None = None
    topics: TelemetryTopics | None = None
    opened: AbstractContextManager[Any] | None = None

    @property
    def hub(self) -> Hub:
        return self.parts.hub


@dataclass(eq=False)
class Socket:
    """One end of a connection: to a client, whose bytes scripts feed, or to the other end of a link."""

    name: str  # of the other side, as it is written down
    site: Site
    connection: Connection
    far: Socket | None = None
    delay_s: float = 0.0
    s_per_kb: float = 0.0
    free_s: float = 0.0
    is_stalled: bool = False
    is_closed: bool = False
    said: bytearray = field(default_factory=bytearray)  # in this moment, and not yet written down

    @property
    def label(self) -> str:
        return f"{self.site.name} > {self.name}"


class World:
    """Brokers, clients and links, and the text of all that they say."""

    def __init__(self, folder: Path) -> None:
        self.now_s = START_S
        self.folder = folder
        self.sites: dict[str, Site] = {}
        self.sockets: dict[Outbox, Socket] = {}
        self.clients: dict[str, Socket] = {}
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._lines: list[str] = []
        self._links = count(1)
        self._warnings: list[str] = []  # of this moment
        self._secret_files = {
            "network.secret": "a secret of the network",
            "control.secret": "hush, control centre",
        }

    # --- what is written down

    def step(self, title: str) -> None:
        """Begin a step of the script."""
        self._settle()
        self._lines += ["", f"== {title}"]

    def note(self, text: str) -> None:
        """Write down something else that can be seen from outside."""
        self._settle()
        self._lines += text.rstrip("\n").split("\n")

    def text(self) -> str:
        """Return all that was written down."""
        self._settle()
        return "\n".join(self._lines).strip() + "\n"

    def warn(self, text: str) -> None:
        """Write down, by the end of this moment, what was logged."""
        self._warnings.append(text)

    def _put(self, who: str, lines: list[str]) -> None:
        self._lines += [f"{self.now_s:.3f} {who}", *lines]

    def _settle(self) -> None:
        """Let everything happen that is due now, and write down what was said meanwhile, by name."""
        for _ in range(TURNS_MAX):
            have_worked = [self._turn(site) for _, site in sorted(self.sites.items())]
            if not any(have_worked):
                break
        else:
            raise AssertionError("brokers do not come to rest")
        if self._warnings:
            self._put("log", [f"  {each}" for each in sorted(self._warnings)])
            self._warnings.clear()
        for socket in sorted(self.sockets.values(), key=lambda each: each.label):
            if socket.said:
                self._put(socket.label, shown(bytes(socket.said)))
                socket.said.clear()
            if socket.is_closed:
                self._put(socket.label, ["  hangs up"])
                del self.sockets[socket.connection]

    # --- brokers

    def broker(self, name: str, toml: str = "", **files: str) -> None:
        """Start a broker by its configuration file; others that it names are given as texts."""
        for file_name, text in {**self._secret_files, **files}.items():
            (self.folder / file_name.replace("_", ".")).write_text(text)
        config = self.folder / f"{name}.toml"
        config.write_text(f'name = "{name}"\nanonymous = true\n{toml}')
        self._start(name, config)

    def _start(self, name: str, config: Path) -> None:
        settings, wall_s = settings_from(config), WALL_AHEAD_S + self.now_s
        opened, logbook, topics = open_store(settings), None, None
        kept, file = opened.__enter__()
        if settings.telemetry is not None:
            logbook = TelemetryLog(settings.name, settings.telemetry, clock_ahead_s=WALL_AHEAD_S)
        parts = compose(
            settings,
            read_access_control(settings),
            now_s=self.now_s,
            wall_s=wall_s,
            epoch=int(wall_s * 1000.0) * 1_000_000,
            kept=kept,
            recorder=None if logbook is None else logbook.recorder,
            model_came=lambda: None,
            nonce=counted_nonces(name),
        )
        if logbook is not None:
            topics = logbook.publish_at(parts.hub)
        if parts.federation is not None:
            # What is told to be wanted comes in no order that could be relied on: it lies in a set.
            found, wanted = _InOrder(), parts.federation._wanted
            found |= wanted._changed
            wanted._changed = found  # type: ignore[assignment]
        parts.hub.counters.started_s = self.now_s
        system = SysTopics(parts.observed, every_s=settings.sys_every_s)
        self.sites[name] = Site(name, parts, config, file, system, settings, None, logbook, topics, opened)

    def kill(self, name: str) -> None:
        """Let a broker vanish without a word; what it committed stays in its file."""
        self._settle()
        site = self.sites.pop(name)
        for socket in [each for each in self.sockets.values() if each.site is site]:
            del self.sockets[socket.connection]
            if socket.far is not None:
                self._break(socket.far)
        if site.logbook is not None:
            site.logbook.close()
        if site.opened is not None:
            site.opened.__exit__(None, None, None)

    def shut_down(self, name: str) -> None:
        """Let a broker say goodbye, and end."""
        self._settle()
        self.sites[name].hub.shut_down(self.now_s)
        self.kill(name)

    def start_again(self, name: str) -> None:
        """Start a broker that ended, from the same files."""
        self._start(name, self.folder / f"{name}.toml")

    def read_files_again(self, name: str, **files: str) -> None:
        """Let a broker read its passwords and access list again, changed."""
        self._settle()
        for file_name, text in files.items():
            (self.folder / file_name.replace("_", ".")).write_text(text)
        settings = self.sites[name].settings
        assert settings is not None
        self.sites[name].hub.change_access_control(read_access_control(settings), self.now_s)
        self._settle()

    def close(self) -> None:
        """End everything."""
        for name in list(self.sites):
            self.kill(name)

    def metrics(self, name: str) -> None:
        """Write down what Prometheus would read of a broker."""
        self._settle()
        text = exposition(gathered(self.sites[name].parts.observed, self.now_s), 0.0)
        told = [each.replace(__version__, "VERSION") for each in text.splitlines() if each[0] != "#"]
        lines = [f"  {each}" for each in told if not each.endswith(" 0.0")]
        nothing = [each.removesuffix(" 0.0") for each in told if each.endswith(" 0.0")]
        self._put(f"{name}: metrics", [*lines, f"  0.0 are {', '.join(nothing)}"])

    def telemetry(self, folder: str) -> None:
        """Write down what brokers that ended wrote into their files, but for what they measured."""
        for kind in sorted((self.folder / folder).iterdir()):
            parts = [pq.read_table(each).to_pylist() for each in sorted(kind.glob("*.parquet"))]
            rows = [row for part in parts for row in part]
            lines = [", ".join(f"{name}={row[name]}" for name in row if name != "matching_s") for row in rows]
            self._put(f"telemetry: {kind.name}", [f"  {each}" for each in sorted(lines)])

    # --- clients

    def open(self, client: str, broker: str) -> None:
        """Open a socket from a client to a broker."""
        self._settle()
        site = self.sites[broker]
        connection = Connection(site.parts.handlers, peer=client, now_s=self.now_s)
        self.clients[client] = self.sockets[connection] = Socket(client, site, connection)

    def feed(self, client: str, *packets: bytes, sizes: int = 0, silent: bool = False) -> None:
        """Let a client send packets, in one read or in reads of so many bytes."""
        self._settle()
        socket, stream = self.clients[client], b"".join(packets)
        if not silent:
            self._put(f"{client} > {socket.site.name}", shown(stream))
        step = sizes or len(stream)
        for start in range(0, len(stream), step):
            socket.connection.receive(stream[start : start + step], self.now_s)
            self._prove(socket)
            self._learn(socket.site)
            self._turn(socket.site)
        self._settle()

    def acknowledge(self, client: str, packet_id: int) -> None:
        """Let a client send the acknowledgements that a delivery to it still needs, if it needs any."""
        self._settle()
        delivery = self.clients[client].connection.reader.in_flight.get(packet_id)
        if delivery is None:
            return
        if delivery.qos == 1:
            self.feed(client, puback(packet_id))
            return
        if not delivery.released:
            self.feed(client, pubrec(packet_id))
        self.feed(client, pubcomp(packet_id))

    def come(self, client: str, broker: str, *packets: bytes) -> None:
        """Open a socket, and send at once."""
        self.open(client, broker)
        self.feed(client, *packets)

    def come_as_neighbour(
        self, client: str, broker: str, connect: bytes, *packets: bytes, is_there: bool = True
    ) -> None:
        """Open a socket, prove the secret if that is asked for, and send; is a peer at its address?"""
        self.come(client, broker, connect)
        link = self.clients[client].connection.link
        if isinstance(link, NeighbourLink) and link._transcript is not None:
            secret = link._owner.secret
            self.feed(client, auth(secret.proof(Side.DIALLER, link._transcript)).write())
        if isinstance(link, PeerLink) and is_there:
            link.confirmed(self.now_s)
        if packets:
            self.feed(client, *packets)

    def drop(self, client: str) -> None:
        """Let a client vanish without a word."""
        self._settle()
        self._put(f"{client} > {self.clients[client].site.name}", ["  is gone"])
        self._break(self.clients[client])
        self._settle()

    def stall(self, client: str) -> None:
        """Let a client's socket take no more."""
        self._settle()
        socket = self.clients[client]
        socket.is_stalled = socket.connection.flow.blocked = True

    def go_on(self, client: str, *, kb: float = 0.0, took_s: float = 0.0) -> None:
        """Let a client's socket take more again; so much was taken meanwhile, in so long."""
        self._settle()
        socket = self.clients[client]
        socket.is_stalled = False
        session = socket.connection.session
        if kb and session is not None and session.scheduled is not None:
            session.scheduled.observe(kb, took_s)
        socket.connection.drained(self.now_s)
        self._settle()

    # --- links

    def link(self, one: str, other: str, *, delay_s: float = 0.001, s_per_kb: float = 0.0) -> None:
        """Let one broker dial another, over a line of this speed."""
        self._settle()
        near = self._pipe(self.sites[one], self.sites[other], delay_s, s_per_kb)
        settings, federation = self.sites[one].settings, near.site.parts.federation
        assert settings is not None
        assert settings.network is not None
        assert federation is not None
        known = {each.to: each for each in settings.network.links}
        terms = replace(known.get(other, LinkTerms(to=other)), host="there")
        BrokerLink(federation, near.connection, terms, self.now_s).dial()

    def cut(self, one: str, other: str) -> None:
        """Break the link between two brokers; what is on the way is lost."""
        self._settle()
        for socket in list(self.sockets.values()):
            if socket.far is not None and {socket.site.name, socket.far.site.name} == {one, other}:
                self._break(socket)
        self._settle()

    def _pipe(self, dialler: Site, answerer: Site, delay_s: float, s_per_kb: float = 0.0) -> Socket:
        mark = f" (link {next(self._links)})"
        near = Socket(
            answerer.name + mark,
            dialler,
            Connection(dialler.parts.handlers, peer=answerer.hub.name, now_s=self.now_s, dialled=True),
        )
        far = Socket(
            dialler.name + mark,
            answerer,
            Connection(answerer.parts.handlers, peer=dialler.hub.name, now_s=self.now_s),
        )
        near.far, far.far = far, near
        for each in (near, far):
            each.delay_s, each.s_per_kb = delay_s, s_per_kb
            self.sockets[each.connection] = each
        return near

    # --- peers

    def peer(
        self,
        name: str,
        *,
        seed: int,
        join: str = "",
        wanted: str = "",
        published: str = "",
        space: dict[str, float],
        levels: int = 6,
        delay_max: float = 10.0,
        places: int = 6,
        delay_s: float = 0.001,
    ) -> None:
        """Start a peer; the space has attributes from 0 to a number."""
        config = self.folder / f"{name}.toml"
        config.write_text("anonymous = true\n")
        number = int((WALL_AHEAD_S + self.now_s) * 1e6)
        hub = Hub(f"{name}:1", access_control=read_access_control(settings_from(config)), first_number=number)
        hub.counters.started_s = self.now_s
        dimensions = tuple([Dimension(attribute=each, low=0.0, high=high) for each, high in space.items()])
        plan = PeerPlan(
            address=hub.name,
            agreement=Agreement(space=Space(dimensions=dimensions, levels=levels), metric=Metric.HOPS),
            settings=live_settings(places, 0.5),
            join=(f"{join}:1",) if join else (),
            wanted=(parse_filter(wanted),) if wanted else None,
            published=(parse_filter(published),) if published else None,
            delay_max=delay_max,
        )
        life = int((WALL_AHEAD_S + self.now_s) * 1000.0) * 1_000_000
        parts = Composition(hub=hub, handlers=PacketHandlers(hub))
        site = self.sites[name] = Site(name, parts)

        def dial(_overlay: PeerOverlay, call: PeerCall) -> None:
            self._later(delay_s, lambda: self._dialled(site, call, delay_s))

        overlay = join_overlay(
            hub,
            plan,
            life=life,
            dial=dial,
            refused=lambda _: None,
            now_s=self.now_s,
            seed=seed,
            nonce=counted_nonces(name),
        )
        site.status = StatusPublisher(overlay, hub.publishing.announce)

    def _dialled(self, dialler: Site, call: PeerCall, delay_s: float) -> None:
        overlay = dialler.hub.network
        if self.sites.get(dialler.name) is not dialler or not isinstance(overlay, PeerOverlay):
            return
        answerer = next((each for each in self.sites.values() if each.hub.name == call.address), None)
        if answerer is None:
            overlay.dial_failed(call, self.now_s)
            return
        near = self._pipe(dialler, answerer, delay_s)
        overlay.open_link(call, near.connection, self.now_s)

    # --- time

    def run(self, for_s: float) -> None:
        """Let time pass, and with it everything that happens meanwhile."""
        end_s = self.now_s + for_s
        while True:
            self._settle()
            tick_s = (self.now_s // TICK_S + 1.0) * TICK_S
            due_s = [self._agenda[0][0]] if self._agenda else []
            next_s = max(min([*due_s, *self._wakes_s(), tick_s]), self.now_s)
            if next_s > end_s:
                break
            self.now_s = next_s
            while self._agenda and self._agenda[0][0] <= self.now_s:
                heapq.heappop(self._agenda)[2]()
            if self.now_s == tick_s:
                for _, site in sorted(self.sites.items()):
                    self._tick(site)
        self.now_s = end_s

    def _wakes_s(self) -> list[float]:
        return [site.hub.network.wake_at_s() for site in self.sites.values()]

    def _tick(self, site: Site) -> None:
        site.hub.tick(self.now_s)
        if site.system is not None:
            site.system.tick(self.now_s)
        if site.status is not None:
            site.status.tick(self.now_s)
        if site.logbook is not None and site.topics is not None and self.now_s % LOOK_EVERY_S == 0.0:
            is_heard_anew = site.topics.tick(self.now_s)
            if is_heard_anew:
                site.logbook.record_all(site.hub)
        if site.parts.store is not None:
            site.parts.store.clock_ahead_s = WALL_AHEAD_S
            site.parts.store.set_numbers_aside(site.hub.publishing.next_number)
        if site.file is not None:
            site.file.tidy()

    def _later(self, after_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now_s + after_s, next(self._order), do))

    # --- what a driver does

    def _turn(self, site: Site) -> bool:
        """Take what lies in a broker's outboxes, after a commit; say whether there was anything."""
        network, store, waiting, has_worked = (
            site.hub.network,
            site.parts.store,
            site.hub.outboxes.waiting,
            False,
        )
        if network.wake_at_s() <= self.now_s:
            network.settle(self.now_s)
            has_worked = True
        if store is not None and store.changed:
            store.commit()
        known = [self.sockets[each] for each in waiting if each in self.sockets]
        has_worked |= bool(waiting)
        waiting.clear()
        for socket in sorted(known, key=lambda each: each.label):
            self._write(socket)
        return has_worked

    def _write(self, socket: Socket) -> None:
        connection = socket.connection
        data = connection.take_outbox()
        socket.said += data
        if socket.far is not None and data:
            start_s = max(socket.free_s, self.now_s)
            socket.free_s = start_s + len(data) / 1000.0 * socket.s_per_kb
            arrives_s = socket.free_s - self.now_s + socket.delay_s
            self._later(arrives_s, lambda: self._arrive(socket.far, data))
        if connection.session is not None and connection.session.scheduled is not None:
            connection.flow.outbox_bytes_max = connection.session.scheduled.below_us_bytes
        if connection.closing:
            socket.is_closed = True
            if socket.far is not None:
                self._later(socket.delay_s, lambda: self._arrive(socket.far, END))
        elif connection.flow.blocked and not socket.is_stalled:
            connection.drained(self.now_s)

    def _arrive(self, socket: Socket | None, data: bytes) -> None:
        if socket is None or socket.connection not in self.sockets:
            return
        if data is END:
            self._break(socket)
        else:
            socket.connection.receive(data, self.now_s)

    def _break(self, socket: Socket) -> None:
        """Tell a broker that the other side of a socket is gone."""
        if socket.said:
            self._put(socket.label, shown(bytes(socket.said)))
        self.sockets.pop(socket.connection, None)
        socket.connection.lost(self.now_s)

    def _prove(self, socket: Socket) -> None:
        packet = socket.connection.unproven
        if packet is not None:
            right = socket.site.hub.access_control.prove(packet.username, packet.password)
            socket.connection.proven(right, self.now_s)

    def _learn(self, site: Site) -> None:
        admission = site.parts.admission
        payload = None if admission is None else admission.take_model()
        if admission is not None and payload is not None:
            admission.learn(
                worked_out(payload), promised_subscriptions(site.hub.sessions.values()), self.now_s
            )
