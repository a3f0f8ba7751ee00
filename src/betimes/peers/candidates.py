"""The candidates for a parent of a peer: hints first, then known peers, then publishers (002, section 4).

A peer that finds no parent may receive coarser expressions to get a better place (002, section 5.1).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable

from betimes.matching.dz.expressions import Dz, DzSet, covers
from betimes.model.bounded_map import BoundedMap
from betimes.peers.accuracy import Accuracy, MeasuredRates
from betimes.peers.children import Children, View
from betimes.peers.coverage import CoverageTable
from betimes.peers.parents import Card, best_parent
from betimes.peers.settings import PeerSettings

HINTS_MAX = 8
TRIED_MAX = 512


class Candidates:
    """The candidates of one peer, and when it asked them."""

    def __init__(
        self, name: str, settings: PeerSettings, view: View, children: Children, chance: Callable[[], float]
    ) -> None:
        self._name = name
        self._settings = settings
        self._view = view
        self._children = children
        self._chance = chance
        self._hints: deque[Card] = deque(maxlen=HINTS_MAX)
        self._tried: BoundedMap[str, float] = BoundedMap(TRIED_MAX)

    def hear_hint(self, card: Card | None) -> None:
        """Note a suited peer that another peer named."""
        if card is not None and card.name != self._name:
            self._hints.append(card)

    def asked(self, name: str, now: float) -> None:
        """Note that a peer was asked: not again for a while."""
        self._tried.note(name, now)
        self._hints = deque([card for card in self._hints if card.name != name], maxlen=HINTS_MAX)

    def best(
        self, asked: Dz, lines: CoverageTable, claim: float, now: float, *, is_late: bool
    ) -> Card | None:
        """Return the peer to ask for an expression, with this bound."""

        def may_ask(card: Card) -> bool:
            return self._may_ask(card, asked, lines, claim, now)

        known = list(filter(may_ask, self._hints)) or list(filter(may_ask, self._view.serving(asked, claim)))
        if is_late:
            known = [card for card in known if card.depth + self._view.delay_to(card.name) <= claim]
        delay_to = self._view.delay_to if self._settings.keeps_late else None
        best = best_parent(known, claim, self._chance, delay_to=delay_to)
        if best is not None and best.delay_max < claim:
            return best
        relevant = sorted(lines.relevant(asked) - lines.by_dz[asked].publishers)
        publishers = list(filter(may_ask, [lines.publishers[name] for name in relevant]))
        if publishers and (best is None or self._chance() < 0.5):
            return publishers[int(self._chance() * len(publishers))]
        return best

    def _may_ask(self, card: Card, asked: Dz, lines: CoverageTable, claim: float, now: float) -> bool:
        if card.name == self._name or card.delay_max > claim:
            return False
        child = self._children.by_name.get(card.name)
        if child is not None and (card.delay_max == claim or asked in child.served):
            return False
        line = lines.by_dz[asked]
        if card.name == line.parent or card.name in line.publishers:
            return False
        if now - self._tried.get(card.name, -math.inf) <= self._settings.ask_again_after:
            return False
        return card.serves(asked)


def coarser_for(
    dz: Dz,
    accuracy: Accuracy,
    lines: CoverageTable,
    told: Iterable[tuple[Dz, float]],
    *,
    steps: int = 1,
    same_publishers: bool = False,
) -> DzSet | None:
    """Return the expressions with one of them shorter, by `steps` bits or as far as is accepted.

    With `same_publishers`, none that needs more of them: they have little room, so that nothing is gained.
    """
    if steps < 1 or accuracy.is_exact:
        return None
    rates = MeasuredRates(lines.rates(told))
    needed = max(len(lines.relevant(dz)), 1)
    found, current, wide = None, lines.dz, dz
    for _ in range(steps):
        coarse = accuracy.coarser(current, wide, rates)
        if coarse is None:
            break
        wide = next((each for each in coarse if covers(each, wide)), wide)
        if same_publishers and len(lines.relevant(wide)) > needed:
            break
        found = current = coarse
    return found
