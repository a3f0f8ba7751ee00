"""The peers that a process knows: a random sample of all peers, renewed by gossip, and the publishers.

Periodically a process picks a known peer, and both exchange cards of other peers and of publishers. Each card
carries a number that its peer counts up: a peer without a newer card for a while is gone, and older cards of
it that others still send are ignored. Publishers are kept apart, as each peer must know all that matter to
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from betimes.broker.peers.packets import Descriptor
from betimes.broker.peers.settings import address_of
from betimes.matching.dz.expressions import WHOLE, Dz
from betimes.model.bounded_map import BoundedMap
from betimes.peers.parents import Card

OTHERS_MAX = 64
PUBLISHERS_MAX = 1_000
SENT_OTHERS, SENT_PUBLISHERS = 12, 6  # in one message
FORGET_AFTER_S = 30.0
GONE_MAX = 4_096  # lost peers whose last card number is remembered


class KnownPeer(NamedTuple):
    """A card, and when it was first received."""

    descriptor: Descriptor
    heard_s: float


class PeerView:
    """The known peers of one process; all peers of the process share this view."""

    def __init__(
        self, own_address: str, chance: Callable[[], float], delay_to: Callable[[str], float]
    ) -> None:
        self._own_address = own_address
        self._chance = chance
        self.delay_to = delay_to  # the delay of a message to a peer, by its name
        self.others: dict[str, KnownPeer] = {}
        self.publishers: dict[str, KnownPeer] = {}
        self._gone: BoundedMap[str, int] = BoundedMap(GONE_MAX)  # the newest card number that is ignored

    def hear_of(self, descriptor: Descriptor, now_s: float) -> bool:
        """Add a card; tell whether it is newer than the known one."""
        name = descriptor.card.name
        if address_of(name) == self._own_address or descriptor.issued <= self._gone.get(name, -1):
            return False
        known = self.publishers if descriptor.card.publishes else self.others
        before = known.get(name)
        if before is not None and descriptor.issued <= before.descriptor.issued:
            return False
        if before is None and known is self.publishers and len(known) >= PUBLISHERS_MAX:
            return False
        if before is None and known is self.others and len(known) >= OTHERS_MAX:
            del known[self._drawn(list(known))]
        known[name] = KnownPeer(descriptor, now_s)
        return True

    def forget(self, name: str) -> None:
        """Take a peer to be gone until a newer card of it arrives."""
        for known in (self.others, self.publishers):
            found = known.pop(name, None)
            if found is not None:
                self._gone.note(name, found.descriptor.issued)

    def forget_old(self, now_s: float) -> list[str]:
        """Forget peers without a newer card for `FORGET_AFTER_S`; return their names."""
        old = [
            name
            for known in (self.others, self.publishers)
            for name, (_, heard_s) in known.items()
            if now_s - heard_s > FORGET_AFTER_S
        ]
        for name in old:
            self.forget(name)
        return old

    def partner(self) -> str | None:
        """Return the address of a random known peer; None if none is known."""
        addresses = {address_of(name) for name in (*self.others, *self.publishers)}
        return self._drawn(sorted(addresses)) if addresses else None

    def sample(self) -> list[Descriptor]:
        """Return a random sample of the known cards, for gossip."""
        return [
            *self._sample(list(self.others.values()), SENT_OTHERS),
            *self._sample(list(self.publishers.values()), SENT_PUBLISHERS),
        ]

    # --- as the view of a peer

    def serving(self, wanted: Dz, delay_max: float) -> Sequence[Card]:
        """Return the cards of peers that could be the parent of a peer that wants this expression."""
        cards = [known.descriptor.card for known in self.others.values()]
        return [card for card in cards if card.delay_max <= delay_max and card.serves(wanted)]

    def rates(self) -> Iterable[tuple[Dz, float]]:
        """Return the rates that other peers measured; without any, events are assumed to be uniform."""
        published = any(known.descriptor.card.rates for known in self.publishers.values())
        if not published:
            return [(WHOLE, 1.0)]
        return [pair for known in self.others.values() for pair in known.descriptor.card.rates]

    def _sample(self, known: list[KnownPeer], count: int) -> list[Descriptor]:
        left = min(count, len(known))
        for place in range(left):  # the first places of a shuffle
            other = place + int(self._chance() * (len(known) - place))
            known[place], known[other] = known[other], known[place]
        return [each.descriptor for each in known[:left]]

    def _drawn(self, names: Sequence[str]) -> str:
        return names[int(self._chance() * len(names))]
