"""A network of brokers under faults, without sockets: virtual time, virtual links, one seed.

The brokers are those that `Server` runs (`compose`), with a store that survives kills. Clients and checker
are those of the live run. The same seed gives the same run.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from tests.broker.neighbours import counted_nonces
from tests.broker.talking import OPEN_ACCESS
from tests.chaos.actors import Actor, Publisher, cast
from tests.chaos.checker import Log, Verdict, judge, with_more
from tests.chaos.nemesis import UNDONE_S, Nemesis

from betimes.broker.access.authentication import AccessControl
from betimes.broker.composition import Composition, OpenStore, compose
from betimes.broker.core.connection import Connection
from betimes.broker.durability.store import Store
from betimes.broker.links.broker_link import BrokerLink
from betimes.broker.storage.change_tables import Changes, Row
from betimes.broker.storage.sqlite_file import StoreError
from betimes.model.buffer_settings import BufferSettings
from betimes.model.network_settings import LinkTerms, NetworkSettings
from betimes.model.server_settings import ServerSettings

DELAY_S = 0.005
TICK_S = 0.25
DOOMED_S = 0.3  # a broker that is to die at the next good moment dies after so long in any case
RESTART_S = 1.0  # after a broker ended by itself
DIAL_EVERY_S = 0.2
DIAL_WITHIN_S = 5.0
PER_S = 4.0  # publications of each publisher
HEAL_S = 30.0  # in which all is well again
STEPS_MAX = 2_000_000  # of the agenda, in one run
TURNS_MAX = 10_000  # of one broker without time passing


class End(Protocol):
    """One end of a wire."""

    def take(self, data: bytes) -> None:
        """Handle bytes that arrived."""

    def closed(self) -> None:
        """Note that the other end has closed."""


class Shelf:
    """A store's file in memory: what was committed outlives its broker."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Row, Row]] = {}
        self.is_full = False

    def write(self, changes: Sequence[Changes]) -> None:
        if self.is_full:
            raise StoreError("simulated.db", "the disk is full", "wait until it is not")
        for change in changes:
            rows = self.rows.setdefault(change.table.name, {})
            width = len(change.table.key_columns)
            for key in change.removed:
                rows.pop(key, None)
            rows.update({row[:width]: row for row in change.put})

    def read(self, table: Any) -> list[Row]:
        return sorted(self.rows.get(table.name, {}).values(), key=lambda row: row[0] or 0)


class Wire:
    """One direction of a connection: bytes in order, each after a delay; a stalled one keeps them."""

    def __init__(self, net: SimulatedNetwork, far: End, owner: SimulatedBroker | None, path: Path) -> None:
        self.far: End | None = far
        self._net = net
        self._owner = owner  # the broker at the far end, which may be stopped
        self._path = path
        self._sent: deque[tuple[float, bytes | None]] = deque()
        self._due_s = 0.0

    def send(self, data: bytes | None) -> None:
        """Put bytes on their way; None: this end closes."""
        self._due_s = max(self._due_s, self._net.now_s + self._path.delay_s)
        self._sent.append((self._due_s, data))
        self._net.at(self._due_s, self.deliver)

    def deliver(self) -> None:
        """Hand over what is due, unless the path is cut or the receiver is stopped."""
        while self._sent and self.far is not None and self._sent[0][0] <= self._net.now_s:
            if self._path.is_cut:
                self._path.stalled.append(self)
                return
            if self._owner is not None and self._owner.is_stopped:
                self._owner.stalled.append(self)
                return
            _, data = self._sent.popleft()
            far = self.far
            if data is None:
                self.far = None
                far.closed()
            else:
                far.take(data)

    def drop(self) -> None:
        """Lose what is on its way."""
        self._sent.clear()
        self.far = None


@dataclass(slots=True)
class Path:
    """The network between two brokers, or between a client and a broker, in one direction."""

    delay_s: float = DELAY_S
    is_cut: bool = False
    stalled: list[Wire] = field(default_factory=list)

    def cut(self) -> None:
        self.is_cut = True

    def heal(self) -> None:
        self.is_cut = False
        stalled, self.stalled = self.stalled, []
        for wire in stalled:
            wire.deliver()

    def slow_down(self, delay_s: float | None) -> None:
        self.delay_s = DELAY_S if delay_s is None else delay_s


class BrokerEnd:
    """A broker's end of a connection."""

    def __init__(self, broker: SimulatedBroker, connection: Connection) -> None:
        self.broker = broker
        self.connection = connection
        self.out: Wire | None = None
        self.into: Wire | None = None

    def take(self, data: bytes) -> None:
        self.connection.receive(data, self.broker.net.now_s)
        self.broker.turn()

    def closed(self) -> None:
        self.broker.ends.pop(self.connection, None)
        self.connection.lost(self.broker.net.now_s)
        self.broker.turn()


class ClientEnd:
    """A client's end of a connection."""

    def __init__(self, net: SimulatedNetwork, actor: Actor) -> None:
        self.net = net
        self.actor = actor
        self.out: Wire | None = None
        self.into: Wire | None = None

    def take(self, data: bytes) -> None:
        self.answer(self.actor.receive(data, self.net.now_s))

    def answer(self, data: bytes | None) -> None:
        if self.out is None:
            return
        if data is None:
            self.hang_up()
        elif data:
            self.out.send(data)

    def closed(self) -> None:
        if self.out is not None:
            self.out = None
            self.actor.lost(self.net.now_s)

    def hang_up(self) -> None:
        """Leave without a DISCONNECT; what is under way to the client is lost."""
        assert self.out is not None
        self.out.send(None)
        if self.into is not None:
            self.into.drop()
        self.closed()


class SimulatedBroker:
    """One broker, from life to life."""

    def __init__(self, net: SimulatedNetwork, name: str, dials: Sequence[str]) -> None:
        self.net = net
        self.name = name
        self.dials = list(dials)
        self.shelf = Shelf()
        self.parts: Composition | None = None
        self.ends: dict[Any, BrokerEnd] = {}
        self.is_stopped = False
        self.stalled: list[Wire] = []
        self.ticked_s = 0.0
        self.life = 0
        self.wall_ahead_s = 0.0  # its clock is wrong by so much, from its next life on
        self.doom: str | None = None  # dies in its next turn: before it commits, or before it writes
        self._dialing: dict[str, BrokerEnd] = {}
        self._is_turning = False

    @property
    def is_alive(self) -> bool:
        return self.parts is not None

    @property
    def is_ready(self) -> bool:
        return self.is_alive

    def start(self) -> None:
        """Begin a life."""
        if self.parts is not None:
            if self.doom is None:
                return
            self._die()  # it was to die earlier
        self.life += 1
        self.doom = None
        self.is_stopped = False
        try:
            self.parts = self._composed()
        except StoreError:  # it cannot commit: its service manager tries again
            self.net.at(self.net.now_s + RESTART_S, self.start)
            return
        self.ticked_s = self.net.now_s
        self.turn()
        self.net.at(self.net.now_s + self.net.chance.uniform(0.0, TICK_S), self._ticker(self.life))
        self.net.at(self.net.now_s + 0.01, self._dialer(self.life))

    def _composed(self) -> Composition:
        wall_s = 1e9 + self.net.now_s + self.wall_ahead_s
        return compose(
            ServerSettings(
                name=self.name,
                buffer=BufferSettings(fetch=("#",)),
                network=NetworkSettings(
                    secret="a secret of the simulated network",
                    links=tuple(LinkTerms(to=each, host="x") for each in self.dials),
                ),
            ),
            OPEN_ACCESS,
            now_s=self.net.now_s,
            wall_s=wall_s,
            epoch=int(wall_s * 1e9),
            kept=OpenStore(store=Store(self.shelf.write), rows=self.shelf.read, source=self.name),
            model_came=lambda: None,
            nonce=counted_nonces(f"{self.name} {self.life}"),
        )

    def reload(self) -> None:
        """Read the access list again, as on SIGHUP."""
        if self.parts is not None and not self.is_stopped:
            self.parts.hub.change_access_control(AccessControl(anonymous=True), self.net.now_s)
            self.turn()

    def kill(self, when: str = "now") -> None:
        """Die without a word; what was not committed is gone, what was written may still arrive."""
        if when == "now" or self.is_stopped:
            self._die()
            return
        self.doom = when
        life = self.life

        def surely() -> None:
            if self.doom and self.life == life:
                self._die()

        self.net.at(self.net.now_s + DOOMED_S, surely)

    def _die(self) -> None:
        self.parts = self.doom = None
        self.is_stopped = False
        ends, self.ends, self._dialing, self.stalled = list(self.ends.values()), {}, {}, []
        for end in ends:
            if end.into is not None:
                end.into.drop()
            if end.out is not None:
                end.out.send(None)

    def shut_down(self) -> None:
        """End gracefully."""
        if self.parts is not None and not self.is_stopped:
            self.parts.hub.shut_down(self.net.now_s)
            self.turn()
            self._die()

    def stop(self) -> None:
        """Do nothing any more; what comes waits."""
        self.is_stopped = True

    def set_clock(self, ahead_s: float) -> bool:
        """Be wrong by so much, from the next life on."""
        self.wall_ahead_s = ahead_s
        return True

    def fill_disk(self) -> None:
        """Let no commit succeed."""
        self.shelf.is_full = True

    def free_disk(self) -> None:
        """Let commits succeed again."""
        self.shelf.is_full = False

    def resume(self) -> None:
        """Go on after SIGSTOP: everything that waited comes at once, before the clock ticks or after."""
        was_stopped, self.is_stopped = self.is_stopped, False
        if was_stopped and self.parts is not None and self.net.chance.random() < 0.5:
            self.parts.hub.tick(self.net.now_s)
            self.turn()
        stalled, self.stalled = self.stalled, []
        for wire in stalled:
            wire.deliver()

    def accept(self, peer: str) -> BrokerEnd:
        """Return the end of a new connection that came in."""
        assert self.parts is not None
        connection = Connection(self.parts.handlers, peer=peer, now_s=self.net.now_s)
        end = self.ends[connection] = BrokerEnd(self, connection)
        return end

    def _ticker(self, life: int) -> Callable[[], None]:
        def tick() -> None:
            if self.life != life or self.parts is None:
                return
            if not self.is_stopped:
                self.parts.hub.tick(self.net.now_s)
                self.ticked_s = self.net.now_s
                self.turn()
            self.net.at(self.net.now_s + TICK_S, tick)

        return tick

    def _dialer(self, life: int) -> Callable[[], None]:
        def dial() -> None:
            if self.life != life or self.parts is None:
                return
            if not self.is_stopped:
                for other in self.dials:
                    self._dial(other)
            self.net.at(self.net.now_s + DIAL_EVERY_S * self.net.chance.uniform(0.5, 1.5), dial)

        return dial

    def _dial(self, other: str) -> None:
        assert self.parts is not None
        federation = self.parts.federation
        assert federation is not None
        old, now_s = self._dialing.get(other), self.net.now_s
        if old is not None and old.connection in self.ends and not old.connection.closing:
            link = old.connection.link
            if (link is not None and link.is_up) or now_s - old.connection.heard_at_s < DIAL_WITHIN_S:
                return
            old.connection.lost(now_s)  # no answer in time
            self.ends.pop(old.connection, None)
            if old.out is not None:
                old.out.send(None)
        answerer = self.net.brokers[other]
        if other in federation.ends or not answerer.is_alive:
            return
        connection = Connection(self.parts.handlers, peer=other, now_s=now_s, dialled=True)
        end = self._dialing[other] = self.ends[connection] = BrokerEnd(self, connection)
        self.net.connect(end, answerer.accept(self.name), self.name, other)
        BrokerLink(federation, connection, LinkTerms(to=other, host="x"), now_s).dial()
        self.turn()

    def turn(self) -> None:
        """Do what the write loop does after a turn: settle, commit, write."""
        if self._is_turning or self.parts is None:
            return
        self._is_turning = True
        try:
            for _ in range(TURNS_MAX):
                if not self._step():
                    return
            raise AssertionError(f"{self.name} does not come to rest")
        except StoreError:  # as the write loop does: cut all connections, and end
            self._die()
            self.net.at(self.net.now_s + RESTART_S, self.start)
        finally:
            self._is_turning = False

    def _step(self) -> bool:
        """Take one turn; tell whether there is more to do at once."""
        assert self.parts is not None
        hub, store, now_s = self.parts.hub, self.parts.store, self.net.now_s
        assert store is not None
        wake_s = hub.network.wake_at_s()
        if wake_s <= now_s:
            hub.network.settle(now_s)
        elif wake_s < self.net.end_s:
            self.net.at(wake_s, self._waker(self.life))
        if self.doom == "before it commits" and store.changed:
            self.kill()
            return False
        store.commit()
        waiting, drained = hub.outboxes.waiting, []
        while waiting:
            if self.doom == "before it writes":
                self._die()
                return False
            store.commit()
            outbox = waiting.pop()
            data, end = outbox.take_outbox(), self.ends.get(outbox)
            if end is None or end.out is None:
                continue
            if data:
                end.out.send(data)
            if end.connection.closing:
                del self.ends[outbox]
                end.out.send(None)
            elif end.connection.flow.blocked:
                drained.append(end.connection)
        for connection in drained:
            connection.drained(now_s)
        return bool(waiting) or hub.network.wake_at_s() <= now_s

    def _waker(self, life: int) -> Callable[[], None]:
        def wake() -> None:
            if self.life == life and not self.is_stopped:
                self.turn()

        return wake


class SimulatedNetwork:
    """Brokers in a ring, clients that roam, and an agenda."""

    def __init__(self, names: Sequence[str], *, seed: str) -> None:
        self.now_s = 0.0
        self.end_s = 1e6
        self.chance = random.Random(seed)
        self.log = Log()
        self.actors: list[Actor] = []
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._paths: dict[tuple[str, str], Path] = {}
        self._client_path = Path(delay_s=0.002)
        ring = [*names[1:], names[0]]
        dials = dict(zip(names, ring, strict=True)) if len(names) > 2 else {names[0]: names[-1]}
        self.brokers = {
            name: SimulatedBroker(self, name, [dials[name]] if name in dials else []) for name in names
        }

    def at(self, time_s: float, call: Callable[[], None]) -> None:
        """Have something done at a time."""
        heapq.heappush(self._agenda, (time_s, next(self._order), call))

    def run(self, until_s: float) -> None:
        """Let time pass."""
        steps = 0
        while self._agenda and self._agenda[0][0] <= until_s:
            self.now_s, _, call = heapq.heappop(self._agenda)
            call()
            steps += 1
            assert steps < STEPS_MAX, "the network does not come to rest"
        self.now_s = until_s

    def path(self, one: str, other: str) -> Path:
        """Return the path from one broker to another."""
        return self._paths.setdefault((one, other), Path())

    def connect(self, near: BrokerEnd, far: BrokerEnd, one: str, other: str) -> None:
        """Join two ends of brokers."""
        near.out = far.into = Wire(self, far, far.broker, self.path(one, other))
        far.out = near.into = Wire(self, near, near.broker, self.path(other, one))

    def add(self, actor: Actor) -> None:
        """Let a client live; it looks after itself every now and then."""
        self.actors.append(actor)
        end: ClientEnd | None = None

        def live() -> None:
            nonlocal end
            now_s = self.now_s
            if actor.is_connected and end is not None:
                end.answer(actor.tick(now_s))
            elif now_s >= actor.connect_at_s:
                broker = self.brokers[actor.choose_broker(now_s)]
                if broker.is_alive:
                    end = ClientEnd(self, actor)
                    far = broker.accept(actor.client_id)
                    end.out = far.into = Wire(self, far, broker, self._client_path)
                    far.out = end.into = Wire(self, end, None, self._client_path)
                    end.out.send(actor.connected(now_s))
                else:
                    actor.lost(now_s)
            self.at(now_s + actor.chance.uniform(0.02, 0.1), live)

        self.at(actor.connect_at_s, live)


def run_schedule(
    seed: int,
    *,
    brokers: int = 3,
    faults: int = 6,
    every_s: float = 1.5,
    roams: bool = True,
) -> Verdict:
    """Return what becomes of one schedule of faults."""
    net = SimulatedNetwork([f"b{number}" for number in range(1, brokers + 1)], seed=str(seed))
    for broker in net.brokers.values():
        broker.start()
    clients = cast(list(net.brokers), net.log, str(seed), publishers=2, per_s=PER_S)
    clients.calm_down()
    for publisher in clients.speakers:
        net.add(publisher)
    _speak(clients.beacons, net, 2.0)  # so every broker is an origin that resuming clients know
    for subscriber in clients.subscribers:
        net.add(subscriber)
    net.run(net.now_s + 3.0)
    net.log.begin()
    assert all(each.is_subscribed for each in clients.subscribers), "everything is quiet"
    for actor in clients.everybody:
        actor.is_calm = not roams
    for publisher in clients.publishers:
        publisher.is_publishing = True
    net.run(net.now_s + 1.0)
    nemesis = Nemesis(net, random.Random(net.chance.random()), net.log)
    for _ in range(faults):
        nemesis.strike()
        net.run(net.now_s + nemesis.chance.expovariate(1.0 / every_s))
    net.run(net.now_s + UNDONE_S)
    clients.calm_down()
    net.run(net.now_s + HEAL_S / 2)
    net.log.is_calm = True
    _speak(clients.speakers, net, HEAL_S / 6)
    net.run(net.now_s + HEAL_S / 6)
    for subscriber in clients.subscribers:  # those that resume are told what they have lost
        subscriber.come_back()
    net.run(net.now_s + HEAL_S / 6)
    return _judged(net)


def _speak(publishers: Sequence[Publisher], net: SimulatedNetwork, for_s: float) -> None:
    for publisher in publishers:
        publisher.is_publishing = True
    net.run(net.now_s + for_s)
    for publisher in publishers:
        publisher.is_publishing = False


def _judged(net: SimulatedNetwork) -> Verdict:
    verdict = judge(net.log)
    more = [
        f"{name}: the clock has stopped"
        for name, broker in net.brokers.items()
        if net.now_s - broker.ticked_s > 1.0
    ]
    more += [f"{each.client_id} is not served" for each in net.actors if not each.is_done]
    for name, broker in net.brokers.items():
        for table in ("custody", "deliveries"):
            left = len(broker.shelf.rows.get(table, {}))
            if left:
                more.append(f"{name}: {left} rows are left in {table}")
    return with_more(verdict, more)
