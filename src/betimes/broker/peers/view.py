"""The peers that a process knows: a random sample of all peers, renewed by gossip, and the publishers.

Periodically a process picks a known peer, and both exchange cards of other peers and of publishers. Each card
carries a number that its peer counts up: a peer without a newer card for a while is gone, and older cards of
it that others still send are ignored. Publishers are kept apart, as each peer must know all that matter to
it.

A card that comes from the peer itself, over a link with its address, counts. A card that another peer sends
is hearsay: it makes a peer known, and is no reason to change or forget a publisher. A publisher that is known
by hearsay only, or has not been heard of for a while, is contacted; it is gone if it cannot be reached. So
that no peer fills the view of others with inventions, the number of cards by hearsay of one peer is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from betimes.broker.peers.packets import Descriptor
from betimes.broker.peers.settings import address_of
from betimes.matching.dz.expressions import WHOLE, Dz
from betimes.model.bounded_map import BoundedMap
from betimes.peers.parents import Card

OTHERS_MAX = 64
PUBLISHERS_MAX = 1_000
SENT_OTHERS, SENT_PUBLISHERS = 12, 6  # in one message
OTHERS_TOLD_MAX, PUBLISHERS_TOLD_MAX = 16, 64  # by hearsay of one peer
PUBLISHERS_HEARSAY_MAX = PUBLISHERS_MAX // 2  # so that those which speak for themselves find room
CONTACTS_MAX = 4  # publishers to contact in one cycle
FORGET_AFTER_S = 30.0
GONE_FOR_S = 120.0  # after which older cards of a lost peer are believed again: a forged number may be high
GONE_MAX = 4_096  # lost peers whose last card number is remembered


class KnownPeer(NamedTuple):
    """A card; `heard_s` is when a newer number of it was last received."""

    card: Card
    issued: int  # its newest number; of a publisher that spoke for itself perhaps by hearsay, unlike the card
    heard_s: float
    told_by: str  # the address of the process that sent the card
    is_asked: bool = False  # it was contacted, as it is known by hearsay only

    @property
    def is_direct(self) -> bool:
        """Return whether the peer itself sent the card."""
        return self.told_by == address_of(self.card.name)

    @property
    def descriptor(self) -> Descriptor:
        """Return the card as gossip passes it on."""
        return Descriptor(self.card, self.issued)


class PeerView:
    """The known peers of one process; all peers of the process share this view."""

    def __init__(
        self,
        own_address: str,
        chance: Callable[[], float],
        delay_to: Callable[[str], float],
        source_of: Callable[[str], str],
    ) -> None:
        self._own_address = own_address
        self._chance = chance
        self.delay_to = delay_to  # the delay of a message to a peer, by its name
        self.source_of = source_of  # the host of a peer, by its name
        self.others: dict[str, KnownPeer] = {}
        self.publishers: dict[str, KnownPeer] = {}
        # The newest card number that is ignored, and since when.
        self._gone: BoundedMap[str, tuple[int, float]] = BoundedMap(GONE_MAX)

    def hear_of(self, descriptor: Descriptor, now_s: float, *, told_by: str) -> bool:
        """Add a card that the process at an address sent; tell whether it replaces what was known."""
        card, issued = descriptor
        if address_of(card.name) == self._own_address:
            return False
        known = self.publishers if card.publishes else self.others
        before = known.get(card.name)
        told = KnownPeer(card, issued, now_s, told_by)
        if not told.is_direct:
            if not self._is_newer(told, before, now_s):
                return False
            if before is not None and before.is_direct and card.publishes:
                known[card.name] = before._replace(issued=issued, heard_s=now_s)  # a sign of life, no more
                return False
            if not _has_room(told, known):
                return False
            if before is not None:
                told = told._replace(is_asked=before.is_asked)
        if before is None and card.publishes and len(known) >= PUBLISHERS_MAX:
            return False
        if before is None and not card.publishes and len(known) >= OTHERS_MAX:
            del known[self._drawn(list(known))]
        known[card.name] = told
        return True

    def _is_newer(self, told: KnownPeer, before: KnownPeer | None, now_s: float) -> bool:
        gone_issued, gone_s = self._gone.get(told.card.name, (-1, -math.inf))
        if told.issued <= gone_issued and now_s - gone_s <= GONE_FOR_S:
            return False
        return before is None or told.issued > before.issued

    def forget(self, name: str, now_s: float) -> None:
        """Take a peer to be gone until a newer card of it arrives, or it speaks for itself."""
        for known in (self.others, self.publishers):
            found = known.pop(name, None)
            if found is not None:
                self._gone.note(name, (found.issued, now_s))

    def forget_old(self, linked: Container[str], now_s: float) -> list[str]:
        """Forget peers without a newer card for `FORGET_AFTER_S`; return their names.

        A link shows by itself whether its peer is there, and publishers that spoke for themselves are
        contacted instead.
        """
        old = [
            name
            for known in (self.others, self.publishers)
            for name, each in known.items()
            if now_s - each.heard_s > FORGET_AFTER_S
            and address_of(name) not in linked
            and not (each.is_direct and each.card.publishes)
        ]
        for name in old:
            self.forget(name, now_s)
        return old

    def to_contact(self, linked: Container[str], now_s: float) -> list[str]:
        """Return publishers to contact in this cycle: known by hearsay only, or not heard of for a while."""
        found = []
        for name, each in self.publishers.items():
            is_old = now_s - each.heard_s > FORGET_AFTER_S and address_of(name) not in linked
            if is_old if each.is_direct else not each.is_asked:
                found.append(name)
                if len(found) == CONTACTS_MAX:
                    break
        for name in found:
            each = self.publishers[name]
            self.publishers[name] = each._replace(
                is_asked=True, heard_s=now_s if each.is_direct else each.heard_s
            )
        return found

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
        cards = [known.card for known in self.others.values()]
        return [card for card in cards if card.delay_max <= delay_max and card.serves(wanted)]

    def rates(self) -> Iterable[tuple[Dz, float]]:
        """Return the rates that other peers measured; without any, events are assumed to be uniform."""
        published = any(known.card.rates for known in self.publishers.values())
        if not published:
            return [(WHOLE, 1.0)]
        return [pair for known in self.others.values() for pair in known.card.rates]

    def _sample(self, known: list[KnownPeer], count: int) -> list[Descriptor]:
        left = min(count, len(known))
        for place in range(left):  # the first places of a shuffle
            other = place + int(self._chance() * (len(known) - place))
            known[place], known[other] = known[other], known[place]
        return [each.descriptor for each in known[:left]]

    def _drawn(self, names: Sequence[str]) -> str:
        return names[int(self._chance() * len(names))]


def _has_room(told: KnownPeer, known: Mapping[str, KnownPeer]) -> bool:
    """Tell whether one more card by hearsay of the same peer is taken in; O(n) in the known peers."""
    hearsay = [each.told_by for name, each in known.items() if not each.is_direct and name != told.card.name]
    if told.card.publishes:
        return hearsay.count(told.told_by) < PUBLISHERS_TOLD_MAX and len(hearsay) < PUBLISHERS_HEARSAY_MAX
    return hearsay.count(told.told_by) < OTHERS_TOLD_MAX
