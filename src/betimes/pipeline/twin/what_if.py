"""What-if questions to a twin: on-time shares and earning, without and with changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from betimes.model.statistics import subscriber_of
from betimes.model.subscriptions import Subscription
from betimes.pipeline.twin.twin import both_ways, measured_on_time, twin_of
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.traces import Spread, Spreads, Twin, play, spreads

CANDIDATES = ("late-binding", "look-ahead", "eb", "fifo")  # strategies that the brokers may have run
Progress = Callable[[int, int], None]  # runs done, total
WANTED_MIN = 30  # messages: a share of fewer is noise (alarms.ROWS_MIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinQuestion:
    """The changes to simulate."""

    times_faster: float = 1.0
    dropped_links: tuple[str, ...] = ()
    subscribers: tuple[Subscription, ...] = ()
    strategy: str | None = None

    @property
    def is_change(self) -> bool:
        """Return whether there is any change."""
        return self != TwinQuestion()


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinAnswer:
    """The measured shares, the twin's shares without changes, and its shares with the changes."""

    strategy: str  # named by the user, or the one that fits best
    fits: Mapping[str, float]  # mean error of each candidate in one run; empty if one was named
    off_mean: float | None  # error of on-time shares, over subscribers
    off_max: float | None
    measured: Mapping[str, float]  # by subscription
    wanted: Mapping[str, float]  # by subscription: the number of messages behind that share
    before: Spreads
    after: Spreads | None
    assumed_links: tuple[str, ...]  # links without measurements

    @property
    def few(self) -> frozenset[str]:
        """Return the subscriptions with too few messages for a reliable share."""
        return frozenset(self.measured) - frozenset(reliable_shares(self.measured, self.wanted))

    def as_json(self) -> dict[str, Any]:
        """Return what --json prints."""
        names = list((self.after or self.before).subscribers)
        return {
            "current_strategy": self.strategy,
            "fits": dict(self.fits),
            "off_mean": self.off_mean,
            "off_max": self.off_max,
            "assumed_links": list(self.assumed_links),
            "before": _totals(self.before),
            "after": None if self.after is None else _totals(self.after),
            "subscribers": [
                {
                    "subscriber": name,
                    "measured": self.measured.get(name),
                    "wanted": self.wanted.get(name),
                    "before": _pair(self.before.subscribers.get(name)),
                    "after": None if self.after is None else _pair(self.after.subscribers.get(name)),
                }
                for name in names
            ],
        }


def ask(
    tables: Path, question: TwinQuestion, candidates: Sequence[str], seeds: int, progress: Progress
) -> TwinAnswer:
    """Fit a twin to tables, and simulate it without and with the changes.

    With several candidates, the strategy is the one under which the twin is closest to the measured shares.
    """
    twin = twin_of(tables)
    found = measured_on_time(tables)
    measured = _by_subscription(twin, {person: share for person, (share, _) in found.items()})
    wanted = _by_subscription(twin, {person: count for person, (_, count) in found.items()})
    changed, assumed = _changed(twin, question)
    player = _Player(progress, len(candidates) * (len(candidates) > 1) + seeds * (1 + question.is_change))
    judged = reliable_shares(measured, wanted)
    fits = _fits(player, twin, candidates, judged)
    strategy = min(candidates, key=lambda name: fits.get(name, 0.0))
    before = player.play(twin, strategy, seeds)
    after = player.play(changed, question.strategy or strategy, seeds) if question.is_change else None
    off = [abs(before.subscribers[name][0] - share) for name, share in judged.items()]
    return TwinAnswer(
        strategy=strategy,
        fits=fits,
        off_mean=sum(off) / len(off) if off else None,
        off_max=max(off, default=None),
        measured=measured,
        wanted=wanted,
        before=before,
        after=after,
        assumed_links=assumed,
    )


def reliable_shares(measured: Mapping[str, float], wanted: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of subscribers with enough messages; all shares, if no subscriber has enough.

    >>> reliable_shares({"ann": 0.5, "probe": 1.0}, {"ann": 40, "probe": 2})
    {'ann': 0.5}
    >>> reliable_shares({"probe": 1.0}, {"probe": 2})
    {'probe': 1.0}
    """
    enough = {name: share for name, share in measured.items() if wanted[name] >= WANTED_MIN}
    return enough or dict(measured)


def _by_subscription(twin: Twin, measured: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return measured values by subscription; a subscriber with several subscriptions is left out."""
    people = [(subscriber_of(each), each.home) for each in twin.scenario.subscriptions]
    return {
        each.id: measured[person]
        for each, person in zip(twin.scenario.subscriptions, people, strict=True)
        if person in measured and people.count(person) == 1
    }


def _changed(twin: Twin, question: TwinQuestion) -> tuple[Twin, tuple[str, ...]]:
    assumed: tuple[str, ...] = ()
    if question.dropped_links or question.subscribers:
        twin, assumed = both_ways(twin)  # a change may need a direction that carried nothing before
    for name in question.dropped_links:
        twin = twin.without_link(name)
    for subscription in question.subscribers:
        twin = twin.with_subscription(subscription)
    return twin.faster(question.times_faster), assumed


class _Player:
    """Simulates twins and reports progress."""

    def __init__(self, advance: Progress, count: int) -> None:
        self._advance = advance
        self._count = count
        self._done = 0

    def play(self, twin: Twin, strategy: str, seeds: int) -> Spreads:
        outcomes = []
        for seed in range(1, seeds + 1):
            outcomes.append(play(twin, strategy_named(strategy), seed))
            self._done += 1
            self._advance(self._done, self._count)
        return spreads(outcomes)


def _fits(
    player: _Player, twin: Twin, candidates: Sequence[str], measured: Mapping[str, float]
) -> dict[str, float]:
    """Return the mean error of the twin under each strategy; nothing if there is one candidate."""
    off: dict[str, float] = {}
    if len(candidates) > 1:
        for name in candidates:
            shares = player.play(twin, name, 1).subscribers
            apart = [abs(shares[each][0] - share) for each, share in measured.items()]
            off[name] = sum(apart) / len(apart) if apart else 0.0
    return off


def _totals(found: Spreads) -> dict[str, Any]:
    return {
        "on_time_share": _pair(found.on_time_share),
        "earning": _pair(found.earning),
        "messages": _pair(found.messages),
    }


def _pair(spread: Spread | None) -> dict[str, float | None] | None:
    return None if spread is None else {"mean": spread[0], "sd": spread[1]}
