"""The children of a peer, and the expressions that it feeds them (002, algorithm 1, lines 16 to 29).

A child has a place as long as it sends refreshes. If a newcomer finds no room, the least valuable child is
dismissed: in the paper the one with the smallest subscription; in ours the one that receives least from
here, and the newcomer adopts it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from betimes.matching.dz.expressions import Dz, DzSet, covers
from betimes.peers.messages import (
    Adopt,
    Connect,
    DetectCycle,
    Dismissed,
    Hint,
    Notice,
    PeerAccepted,
    PeerEffect,
    PeerRefresh,
    SendToPeer,
)
from betimes.peers.parents import Card, best_parent, narrowest
from betimes.peers.settings import PeerSettings


class View(Protocol):
    """The other peers that a peer knows, a changing sample of all."""

    def serving(self, wanted: Dz, delay_max: float) -> Sequence[Card]:
        """Return the peers that could feed this subscription."""

    def rates(self) -> Iterable[tuple[Dz, float]]:
        """Return the event rates that others measured, by expression."""

    def delay_to(self, name: str) -> float:
        """Return the known delay of a message to a peer: 1 if hops are counted."""

    def source_of(self, name: str) -> str:
        """Return where a peer is: peers of one host have the same source."""


@dataclass(slots=True)
class Child:
    """A peer that is fed from here."""

    card: Card
    served: set[Dz]
    heard: float
    needed: set[Dz]  # part of `served`: only that is sent

    def keep_to(self, served: set[Dz]) -> None:
        """Serve less."""
        self.served = served
        self.needed = {dz for dz in self.needed if any(covers(wider, dz) for wider in served)}


class Children:
    """All children of one peer, never more than it has places."""

    def __init__(self, settings: PeerSettings, view: View, chance: Callable[[], float]) -> None:
        self._settings = settings
        self._view = view
        self._chance = chance
        self.by_name: dict[str, Child] = {}

    def connect(self, message: Connect, own: Card, above: Iterable[Card], now: float) -> list[PeerEffect]:
        """Accept a child, and dismiss another if there is no room; or give a hint."""
        card = message.card
        served = {dz for dz in message.wanted if own.serves(dz)}
        if not served or card.delay_max < own.delay_max:
            return [SendToPeer(card.name, Hint(self._suited(card, message.wanted, above)))]
        child = self.by_name.setdefault(card.name, Child(card, set(), now, set()))
        child.card, child.heard = card, now
        child.served |= served
        child.needed |= served
        answer: list[PeerEffect] = [SendToPeer(card.name, PeerAccepted(own, tuple(sorted(served))))]
        if len(self.by_name) <= self._settings.out_degree_max:
            return answer
        worst = narrowest({name: self._worth(self.by_name[name]) for name in self._crowding()})
        if worst == card.name:
            del self.by_name[worst]
            return [SendToPeer(worst, Hint(self._suited(card, message.wanted, self._cards())))]
        gone = self.by_name[worst]
        parts = tuple(sorted(gone.served))
        if self._settings.adopts and card.delay_max <= gone.card.delay_max and all(map(card.serves, parts)):
            del self.by_name[worst]
            return [
                *answer,
                SendToPeer(worst, Dismissed(parts, card)),
                SendToPeer(card.name, Adopt(gone.card, parts)),
            ]
        return [*answer, *self._dismiss(worst, parts)]

    def adopt(self, message: Adopt, own: Card, now: float) -> list[PeerEffect]:
        """Adopt a child if there is room."""
        card, served = message.card, tuple([dz for dz in message.served if own.serves(dz)])
        is_full = len(self.by_name) >= self._settings.out_degree_max
        if not served or is_full or card.delay_max < own.delay_max or card.name in self.by_name:
            return []
        self.by_name[card.name] = Child(card, set(served), now, set(served))
        return [SendToPeer(card.name, PeerAccepted(own, served))]

    def refreshed(self, name: str, message: PeerRefresh, own: Card, now: float) -> list[PeerEffect]:
        """Note that a child is alive; notify it of expressions that it does not get from here."""
        child = self.by_name.get(name)
        if child is None:
            return [SendToPeer(name, Dismissed(message.served, None))]
        child.card, child.heard = message.card, now
        child.served = {dz for dz in message.served if own.serves(dz)}
        child.needed = set(child.served if message.needed is None else message.needed)
        child.keep_to(child.served)
        wrong = tuple([dz for dz in message.served if dz not in child.served])
        if not child.served:
            del self.by_name[name]
        return [SendToPeer(name, Dismissed(wrong, None))] if wrong else []

    def left(self, name: str, parts: Iterable[Dz]) -> None:
        """Stop feeding a child with expressions that it does not want."""
        child = self.by_name.get(name)
        if child is not None:
            child.keep_to(child.served.difference(parts))
            if not child.served:
                del self.by_name[name]

    def keep_to(self, received: DzSet) -> list[PeerEffect]:
        """Feed children only with what is received from now on."""
        effects: list[PeerEffect] = []
        for name, child in list(self.by_name.items()):
            lost = tuple([dz for dz in child.served if not any(covers(each, dz) for each in received)])
            effects += self._dismiss(name, lost) if lost else []
        return effects

    def forget_silent(self, now: float) -> None:
        """Free the places of silent children."""
        after = self._settings.forget_after
        for name in [name for name, child in self.by_name.items() if now - child.heard > after]:
            del self.by_name[name]

    def lost(self, name: str) -> None:
        """Forget a child that is gone."""
        self.by_name.pop(name, None)

    def forward(self, notice: Notice, *, but: str) -> list[PeerEffect]:
        """Send an event to all children that get it from here."""
        bits, length = notice.dz.bits, notice.dz.length
        return [
            SendToPeer(name, notice)
            for name, child in self.by_name.items()
            if name != but and _holds(child.needed, bits, length)
        ]

    def ask_for_cycle(self, parent: Card, question: DetectCycle) -> list[PeerEffect]:
        """Ask whether a new parent's feed comes from this peer: only if all between get the same."""
        is_among = question.delay_max in (parent.delay_max, math.inf) and question.dz in parent.dz
        return self.pass_on(question) if is_among and not parent.publishes else []

    def pass_on(self, message: DetectCycle) -> list[PeerEffect]:
        """Ask the children that could be in a cycle: those with the named bound that get the same."""
        return [
            SendToPeer(name, message)
            for name, child in self.by_name.items()
            if message.delay_max in (child.card.delay_max, math.inf) and message.dz in child.served
        ]

    def _crowding(self) -> list[str]:
        """Return the children that may be dismissed: those of the source with the most places.

        So no host takes the places of others, however many peers it runs; the paper has one peer at each.
        """
        sources = {name: self._view.source_of(name) for name in self.by_name}
        places = Counter(sources.values())
        most = max(places.values())
        return [name for name, source in sources.items() if places[source] == most]

    def _worth(self, child: Child) -> tuple[float, float]:
        if self._settings.keeps_late:
            return sum([dz.volume for dz in child.served]), child.card.delay_max
        return child.card.volume, child.card.delay_max

    def _dismiss(self, name: str, parts: DzSet) -> list[PeerEffect]:
        child = self.by_name[name]
        self.left(name, parts)
        return [SendToPeer(name, Dismissed(parts, self._suited(child.card, parts, self._cards())))]

    def _cards(self) -> list[Card]:
        return [each.card for each in self.by_name.values()]

    def _suited(self, card: Card, wanted: DzSet, known: Iterable[Card]) -> Card | None:
        """Return a parent that would suit a peer, among the known ones."""
        if not wanted:
            return None
        near = [*known, *self._view.serving(wanted[0], card.delay_max)]
        near = [each for each in near if each.name != card.name and each.serves(wanted[0])]
        # The distance from there to here is the only known estimate of the distance from there to them.
        delay_to = self._view.delay_to if self._settings.keeps_late else None
        return best_parent(near, card.delay_max, self._chance, delay_to=delay_to)


def _holds(served: Iterable[Dz], bits: int, length: int) -> bool:
    return any(bits >> length - dz.length == dz.bits for dz in served)
