"""How do tests get a network of brokers without sockets? Hubs joined by pipes, on a clock that tests move."""

from __future__ import annotations

import heapq
from itertools import count
from typing import Any

from tests.broker.talking import OPEN_ACCESS, Client

from betimes.broker.access.authentication import AccessControl
from betimes.broker.composition import Composition, OpenStore, compose
from betimes.broker.core.connection import Connection
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.links.broker_link import BrokerLink
from betimes.broker.links.federation import Federation
from betimes.broker.observe.event_recorder import EventRecorder
from betimes.model.buffer_settings import BufferSettings
from betimes.model.network_settings import LinkTerms, NetworkSettings
from betimes.model.server_settings import ServerSettings

TICK_S = 0.25
END = b""  # the other side has hung up
_epochs = count(1)


class Net:
    """Brokers by name; bytes between them take `delay_s`, and KBs as long as the link says."""

    def __init__(
        self,
        *names: str,
        buffer: BufferSettings | None = None,
        access_control: AccessControl = OPEN_ACCESS,
        **settings: Any,
    ) -> None:
        self.now_s = 100.0
        self.hubs: dict[str, Hub] = {}
        self.brokers: dict[str, Composition] = {}
        self._buffer = buffer
        self._access_control = access_control
        self._settings = {"secret": "hush", **settings}
        self._pipes: dict[Outbox, tuple[Connection, float, float]] = {}
        self._free_s: dict[Outbox, float] = {}
        self._owners: dict[Outbox, str] = {}  # the broker of each end of a link
        self._agenda: list[tuple[float, int, Any, bytes]] = []
        self._order = count()
        self.bytes_sent = 0
        for name in names:
            self.start(name)

    def start(
        self,
        name: str,
        *,
        kept: OpenStore | None = None,
        wall_s: float | None = None,
        recorder: EventRecorder | None = None,
        **settings: Any,
    ) -> Hub:
        """Start a broker, or another life of one; with a store it needs a clock that goes on."""
        parts = self.brokers[name] = compose(
            ServerSettings(
                name=name, buffer=self._buffer, network=NetworkSettings(**{**self._settings, **settings})
            ),
            self._access_control,
            now_s=self.now_s,
            wall_s=float(next(_epochs)) if wall_s is None else wall_s,  # ids do not begin anew
            epoch=next(_epochs),
            kept=kept,
            recorder=recorder,
            model_came=lambda: None,
        )
        hub = self.hubs[name] = parts.hub
        return hub

    def join(
        self, one: str, other: str, *, delay_s: float = 0.001, s_per_kb: float = 0.0, **terms: Any
    ) -> None:
        """Let one broker dial another."""
        dialler, answerer = self.brokers[one], self.brokers[other]
        near = Connection(dialler.handlers, peer=other, now_s=self.now_s, dialled=True)
        far = Connection(answerer.handlers, peer=one, now_s=self.now_s)
        self._owners |= {near: one, far: other}
        self._pipes[near] = (far, delay_s, s_per_kb)
        self._pipes[far] = (near, delay_s, s_per_kb)
        assert dialler.federation is not None
        BrokerLink(dialler.federation, near, LinkTerms(to=other, host="x", **terms), self.now_s).dial()

    def cut(self, one: str, other: str) -> None:
        """Break the link between two brokers; what is on the way is lost."""
        for near, (far, _, _) in list(self._pipes.items()):
            if {self._owners[near], self._owners[far]} == {one, other}:
                del self._pipes[near]
                _break(near, self.now_s)

    def kill(self, name: str, **noticed_after_s: float) -> None:
        """Let a broker vanish without a word; its neighbours notice at once, or later."""
        del self.hubs[name], self.brokers[name]
        for near, (far, _, _) in list(self._pipes.items()):
            if self._owners[near] == name:
                self._pipes.pop(near, None)
            elif self._owners[far] == name and self._owners[near] in noticed_after_s:
                at_s = self.now_s + noticed_after_s[self._owners[near]]
                heapq.heappush(self._agenda, (at_s, next(self._order), near, END))
            elif self._owners[far] == name:
                self._pipes.pop(near, None)
                _break(near, self.now_s)

    def ends(self, broker: str) -> dict[str, BrokerLink]:
        """Return the links of a broker that are up."""
        return self.federation(broker).ends

    def federation(self, broker: str) -> Federation:
        """Return the part of a broker that links it to others."""
        federation = self.brokers[broker].federation
        assert federation is not None
        return federation

    def client(self, broker: str, client_id: str, **connect: Any) -> Client:
        """Connect a client to a broker."""
        return Client(self.hubs[broker], client_id, now_s=self.now_s, **connect)

    def run(self, for_s: float = 0.0) -> None:
        """Let time pass, and with it everything that happens meanwhile."""
        end_s = self.now_s + for_s
        while True:
            self._collect()
            due_s = [self._agenda[0][0]] if self._agenda else []
            wake_s = [hub.network.wake_at_s() for hub in self.hubs.values()]
            next_s = max(min([*due_s, *wake_s, self.now_s - self.now_s % TICK_S + TICK_S]), self.now_s)
            if next_s > end_s:
                break
            self.now_s = next_s
            while self._agenda and self._agenda[0][0] <= self.now_s:
                _, _, connection, data = heapq.heappop(self._agenda)
                if connection in self._pipes and data is END:
                    del self._pipes[connection]
                    connection.lost(self.now_s)
                elif connection in self._pipes:
                    connection.receive(data, self.now_s)
            for hub in self.hubs.values():
                if self.now_s % TICK_S == 0.0:
                    hub.tick(self.now_s)
                if hub.network.wake_at_s() <= self.now_s:
                    hub.network.settle(self.now_s)
        self.now_s = end_s

    def _collect(self) -> None:
        """Take what lies in the outboxes of links onto its way."""
        for hub in list(self.hubs.values()):
            for connection in list(hub.outboxes.waiting):
                pipe = self._pipes.get(connection)
                if connection not in self._owners:
                    continue  # tests read what clients get
                hub.outboxes.waiting.discard(connection)
                data = connection.take_outbox()
                if pipe is None:
                    continue
                far, delay_s, s_per_kb = pipe
                if data:
                    self.bytes_sent += len(data)
                    free_s = (
                        max(self._free_s.get(connection, 0.0), self.now_s) + len(data) / 1000.0 * s_per_kb
                    )
                    self._free_s[connection] = free_s
                    heapq.heappush(self._agenda, (free_s + delay_s, next(self._order), far, data))
                if connection.flow.blocked:
                    assert isinstance(connection, Connection)
                    connection.drained(self.now_s)
                if connection.closing:
                    del self._pipes[connection]
                    heapq.heappush(self._agenda, (self.now_s + 10 * delay_s, next(self._order), far, END))


def _break(end: Outbox, now_s: float) -> None:
    """Let one end of a link notice that the other is gone."""
    assert isinstance(end, Connection)
    end.lost(now_s)
