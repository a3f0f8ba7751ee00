"""The coverage of each expression of a peer: by one parent, or by all relevant publishers (002)."""

from __future__ import annotations

import math
from collections.abc import Iterable

from betimes.matching.dz.expressions import Dz, DzSet, covers, overlaps
from betimes.peers.parents import Card

PUBLISHERS_MAX = 1_000  # that one peer knows of
COUNTED_FOR = 5.0  # cycles over which a rate is measured


class Coverage:
    """One dz-expression of a peer: its feeders, and what arrived of it."""

    __slots__ = (
        "count",
        "counted_since",
        "depth",
        "heard",
        "is_late",
        "late_since",
        "parent",
        "publishers",
        "rate",
        "since",
    )

    def __init__(self, now: float) -> None:
        self.parent: str | None = None  # a subscriber
        self.publishers: set[str] = set()
        self.since = now  # it has been uncovered since then, if it is
        self.heard = now  # time of the last arrival
        self.depth = math.inf  # delay of the last event
        self.is_late = False
        self.late_since = now
        self.count = 0.0
        self.counted_since = now
        self.rate: float | None = None  # of events

    def part(self, now: float) -> Coverage:
        """Return the coverage of a part of it, with the same feeders."""
        found = Coverage(now)
        found.parent, found.publishers = self.parent, set(self.publishers)
        found.depth, found.is_late, found.late_since = self.depth, self.is_late, self.late_since
        return found

    def note(self, weight: float, delay: float, now: float) -> None:
        """Note that an event arrived."""
        self.heard = now
        self.depth = delay
        self.count += weight

    def judge(self, is_late: bool, now: float) -> None:
        """Note whether an event arrived too late."""
        if is_late and not self.is_late:
            self.late_since = now
        self.is_late = is_late

    def measure(self, now: float) -> None:
        """Measure the rate of events, once enough time has passed."""
        elapsed = now - self.counted_since
        if elapsed >= COUNTED_FOR:
            self.rate = self.count / elapsed
            self.count, self.counted_since = 0.0, now

    def fed_by(self) -> list[str]:
        """Return its feeders."""
        return [*([] if self.parent is None else [self.parent]), *sorted(self.publishers)]

    def replace(self, name: str, now: float, *, publishes: bool) -> list[str]:
        """Use another feeder from now on; return those that are no longer needed."""
        if publishes and self.parent is None:
            self.publishers.add(name)
            self.heard = now
            return []
        old = [each for each in self.fed_by() if each != name]
        self.parent, self.publishers = (None, {name}) if publishes else (name, set())
        self.since = self.heard = now
        self.depth, self.is_late = math.inf, False
        return old

    def lose(self, name: str, now: float) -> bool:
        """Note that a feeder is gone; return whether it was one."""
        if self.parent == name:
            self.parent = None
        elif name in self.publishers:
            self.publishers.remove(name)
        else:
            return False
        self.since, self.depth, self.is_late = now, math.inf, False
        return True


class CoverageTable:
    """All expressions of a peer, and the publishers that it knows."""

    def __init__(self, wanted: Iterable[Dz], now: float) -> None:
        self.by_dz: dict[Dz, Coverage] = {dz: Coverage(now) for dz in wanted}
        self.dz: DzSet = tuple(self.by_dz)  # what it wants
        self.publishers: dict[str, Card] = {}
        self._relevant: dict[Dz, frozenset[str]] = {}

    def change(self, wanted: Iterable[Dz], now: float, *, keeps_parts: bool = False) -> dict[str, DzSet]:
        """Use other expressions; return those that the present feeders should no longer send.

        The feeders of an unchanged part keep it; with `keeps_parts` also the feeders of a larger part.
        """
        old = self.by_dz
        self.by_dz = {}
        for dz in wanted:
            wider = [line for each, line in old.items() if covers(each, dz)] if keeps_parts else []
            self.by_dz[dz] = old.get(dz) or (wider[0].part(now) if wider else Coverage(now))
        self.dz = tuple(self.by_dz)
        leaving: dict[str, list[Dz]] = {}
        for dz, line in old.items():
            if dz not in self.by_dz:
                for name in line.fed_by():
                    leaving.setdefault(name, []).append(dz)
        return {name: tuple(parts) for name, parts in leaving.items()}

    def measured(self) -> dict[Dz, float]:
        """Return the event rate of each expression that has been measured."""
        return {dz: line.rate for dz, line in self.by_dz.items() if line.rate is not None}

    def rates(self, told: Iterable[tuple[Dz, float]]) -> dict[Dz, float]:
        """Return the event rates of expressions, by other peers' reports and by the publishers' own."""
        found = dict(told)
        for card in self.publishers.values():
            found.update(card.rates)
        return found

    def overall_rate(self) -> float | None:
        """Return the total rate that all publishers state; None if none states one."""
        rates = [rate for card in self.publishers.values() for _, rate in card.rates]
        return sum(rates) if rates else None

    def hear_of(self, publisher: Card) -> None:
        """Learn of a publisher, or of its present expressions."""
        known = self.publishers.get(publisher.name)
        if known is None and len(self.publishers) >= PUBLISHERS_MAX:
            return
        if known is None or known.dz != publisher.dz:
            self._relevant.clear()
        self.publishers[publisher.name] = publisher

    def forget(self, publisher: str) -> None:
        """Forget a publisher."""
        if self.publishers.pop(publisher, None) is not None:
            self._relevant.clear()

    def relevant(self, dz: Dz) -> frozenset[str]:
        """Return the publishers of something in this expression."""
        found = self._relevant.get(dz)
        if found is None:
            found = self._relevant[dz] = frozenset(
                [
                    name
                    for name, card in self.publishers.items()
                    if any(overlaps(each, dz) for each in card.dz)
                ]
            )
        return found

    def is_covered(self, dz: Dz, line: Coverage) -> bool:
        """Return whether a parent, or every relevant publisher, feeds it."""
        if line.parent is not None:
            return True
        relevant = self.relevant(dz)
        return bool(relevant) and relevant <= line.publishers

    def uncovered(self) -> list[Dz]:
        """Return the expressions that are not covered."""
        return [dz for dz, line in self.by_dz.items() if not self.is_covered(dz, line)]

    def late(self) -> list[Dz]:
        """Return the expressions that arrive too late from a parent that is kept nevertheless."""
        return [dz for dz, line in self.by_dz.items() if line.is_late]

    def of(self, notice_dz: Dz) -> tuple[Dz, Coverage] | None:
        """Return the coverage that an event belongs to."""
        bits, length = notice_dz.bits, notice_dz.length
        for dz, line in self.by_dz.items():
            if bits >> length - dz.length == dz.bits:
                return dz, line
        return None

    def of_parent(self, name: str) -> DzSet:
        """Return the expressions that a peer feeds."""
        return tuple(
            [dz for dz, line in self.by_dz.items() if line.parent == name or name in line.publishers]
        )

    def parents(self) -> set[str]:
        """Return all feeders."""
        found = {line.parent for line in self.by_dz.values() if line.parent is not None}
        return found.union(*[line.publishers for line in self.by_dz.values()])

    @property
    def depth(self) -> float:
        """Return the delay of the slowest expression; inf as long as one does not arrive."""
        return max([line.depth for line in self.by_dz.values()], default=math.inf)
