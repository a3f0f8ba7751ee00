"""How do tests get an overlay of peers without sockets? Hubs joined by pipes, on a clock that tests move."""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import count
from typing import Any

from tests.broker.talking import OPEN_ACCESS, Client

from betimes.broker.composition import join_overlay
from betimes.broker.core.connection import Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.peers.overlay import PeerCall, PeerOverlay
from betimes.broker.peers.settings import Agreement, PeerPlan
from betimes.language.filters.parse import parse_filter
from betimes.matching.dz.spaces import Dimension, Space
from betimes.model.overlay_settings import Metric
from betimes.peers.settings import live_settings

TICK_S = 0.25
END = b""  # the other side has hung up
SPACE = Space(
    dimensions=(Dimension(attribute="x", low=0.0, high=100.0), Dimension(attribute="y", low=0.0, high=100.0)),
    levels=6,
)
_lives = count(1)


def plan(name: str, **changes: Any) -> PeerPlan:
    """Return what a peer is told; filters and the metric may be given as texts."""
    for key in ("wanted", "published"):
        if isinstance(changes.get(key), str):
            changes[key] = (parse_filter(changes[key]),)
    metric = Metric(changes.pop("metric", Metric.HOPS))
    changes.setdefault("agreement", Agreement(space=SPACE, metric=metric))
    settings = live_settings(changes.pop("places", 6), changes.pop("bandwidth", 0.5))
    return replace(
        PeerPlan(address=address(name), agreement=changes["agreement"], settings=settings), **changes
    )


def address(name: str) -> str:
    return f"{name}:1"


class PeerNet:
    """Processes by name; bytes between them take `delay_s`, or what `delays_s` says of a pair."""

    def __init__(self, *, delay_s: float = 0.001) -> None:
        self.now_s = 100.0
        self.delay_s = delay_s
        self.delays_s: dict[frozenset[str], float] = {}
        self.hubs: dict[str, Hub] = {}
        self.refusals: list[tuple[str, str]] = []
        self._owners: dict[Outbox, str] = {}  # the process of each end of a link
        self._pipes: dict[Outbox, Connection] = {}
        self._agenda: list[tuple[float, int, Any]] = []
        self._order = count()

    def start(self, name: str, *, join: str = "", seed: int = 0, **changes: Any) -> PeerOverlay:
        """Start a process, or another life of one; it joins by another one's name."""
        number = next(_lives) * 1_000_000
        hub = self.hubs[name] = Hub(address(name), access_control=OPEN_ACCESS, first_number=number)
        told = plan(name, join=(address(join),) if join else (), **changes)
        return join_overlay(
            hub,
            told,
            life=next(_lives) * 1_000_000,
            dial=lambda _, call: self._later(self.delay_s, lambda: self._dialled(name, call)),
            refused=lambda text: self.refusals.append((name, text)),
            now_s=self.now_s,
            seed=seed or len(self.hubs),
        )

    def overlay(self, name: str) -> PeerOverlay:
        overlay = self.hubs[name].network
        assert isinstance(overlay, PeerOverlay)
        return overlay

    def client(self, name: str, client_id: str, **connect: Any) -> Client:
        """Connect a client to a process."""
        return Client(self.hubs[name], client_id, now_s=self.now_s, **connect)

    def kill(self, name: str) -> None:
        """Let a process vanish without a word; its sockets break."""
        del self.hubs[name]
        for near, far in list(self._pipes.items()):
            if self._owners[near] == name:
                self._pipes.pop(near, None)
                self._pipes.pop(far, None)
                if self._owners[far] != name:
                    self._later(self.delay_s, lambda far=far: far.lost(self.now_s))

    def run(self, for_s: float) -> None:
        """Let time pass, and with it everything that happens meanwhile."""
        end_s = self.now_s + for_s
        while True:
            self._collect()
            next_tick_s = (self.now_s // TICK_S + 1.0) * TICK_S
            next_s = min(self._agenda[0][0], next_tick_s) if self._agenda else next_tick_s
            if next_s > end_s:
                break
            self.now_s = max(next_s, self.now_s)
            while self._agenda and self._agenda[0][0] <= self.now_s:
                heapq.heappop(self._agenda)[2]()
            if self.now_s == next_tick_s:
                for hub in list(self.hubs.values()):
                    hub.tick(self.now_s)
        self.now_s = end_s

    def _later(self, after_s: float, do: Any) -> None:
        heapq.heappush(self._agenda, (self.now_s + after_s, next(self._order), do))

    def _dialled(self, dialler: str, call: PeerCall) -> None:
        if dialler not in self.hubs:
            return
        overlay = self.overlay(dialler)
        to = call.address
        answerer = next((name for name, hub in self.hubs.items() if hub.name == to), None)
        if answerer is None:
            overlay.dial_failed(call, self.now_s)
            return
        handlers = [PacketHandlers(self.hubs[name]) for name in (dialler, answerer)]
        near = Connection(handlers[0], peer=to, now_s=self.now_s, dialled=True)
        far = Connection(handlers[1], peer=address(dialler), now_s=self.now_s)
        self._owners |= {near: dialler, far: answerer}
        self._pipes[near], self._pipes[far] = far, near
        overlay.open_link(call, near, self.now_s)

    def _collect(self) -> None:
        """Take what lies in the outboxes of links onto its way."""
        for hub in list(self.hubs.values()):
            for connection in list(hub.outboxes.waiting):
                if isinstance(connection, Connection) and connection.session is not None:
                    continue  # tests read what clients get
                hub.outboxes.waiting.discard(connection)
                data, far = connection.take_outbox(), self._pipes.get(connection)
                connection.flow.blocked = False
                if far is None:
                    continue
                pair = frozenset((address(self._owners[connection]), address(self._owners[far])))
                delay_s = self.delays_s.get(pair, self.delay_s)
                if data:
                    self._later(delay_s, lambda far=far, data=data: self._receive(far, data))
                if connection.closing:
                    self._later(delay_s, lambda near=connection, far=far: self._end(near, far))

    def _receive(self, connection: Connection, data: bytes) -> None:
        if connection in self._pipes:
            connection.receive(data, self.now_s)

    def _end(self, near: Outbox, far: Connection) -> None:
        self._pipes.pop(near, None)
        if self._pipes.pop(far, None) is not None:
            far.lost(self.now_s)
