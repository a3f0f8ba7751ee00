"""A node of an overlay: it finds its neighbours, and reserves bandwidth on its links (004).

It combines a node of the hash table and a reserving node (`reservations/node.py`) that uses the table's
links. Sans-I/O: the simulator drives this class, and a live broker can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from betimes.reservations.node import ReservingNode, ReservingSettings
from betimes.reservations.overlay.dht import Contacts, DhtLeave, DhtNode, DhtSettings, Join, Ping, Pong
from betimes.reservations.requests import Effect

DHT_MESSAGES = (Ping, Pong, Join, Contacts, DhtLeave)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationOverlaySettings(ReservingSettings):
    """The settings of the nodes of an overlay."""

    dht: DhtSettings = field(default_factory=DhtSettings)


class OverlayNode(ReservingNode):
    """One node: its part of the table, and a reserving node."""

    def __init__(
        self, name: str, settings: ReservationOverlaySettings, link_bytes_per_s: Callable[[str], int]
    ) -> None:
        self.dht = DhtNode(name, settings.dht)
        super().__init__(self.dht, settings, link_bytes_per_s)

    def join(self, through: str, now_s: float) -> list[Effect]:
        """Join an overlay with the help of a node that is part of it."""
        return list(self.dht.join(through, now_s))

    def leave(self, now_s: float) -> list[Effect]:
        """Leave, the table before the flows: new requests then avoid this node."""
        return [*self.dht.leave(), *super().leave(now_s)]

    def receive(self, sender: str, message: object, now_s: float) -> list[Effect]:
        """Handle a message from another node."""
        if isinstance(message, DHT_MESSAGES):
            return list(self.dht.receive(message, now_s))
        return super().receive(sender, message, now_s)

    def lost(self, neighbour: str, now_s: float) -> list[Effect]:
        """Note that the link to a neighbour is gone."""
        return [*self.dht.lost(neighbour, now_s), *super().lost(neighbour, now_s)]

    def beat(self, now_s: float) -> list[Effect]:
        """Do what is due: pings, and the duties of a reserving node."""
        self.dht.pinned = {*self.outward.neighbours, *self.inward.neighbours}
        before = set(self.dht.neighbours)
        effects: list[Effect] = list(self.dht.beat(now_s))
        for gone in sorted(before.difference(self.dht.neighbours)):
            effects += super().lost(gone.name, now_s)
        return effects + super().beat(now_s)
