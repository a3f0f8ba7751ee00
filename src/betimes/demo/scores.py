"""Who subscribes to the flights of the demo, and what did each get of what they wanted?

A departure counts once for a subscriber, and is on time by the clock of the process that both published and
received it. Time is handed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from betimes.demo.flights import Departure
from betimes.language.files.scenario_file import read_scenario
from betimes.model.subscriptions import Subscription
from betimes.model.topology import Scenario

SCENARIO = "flights.toml"
STRATEGIES = {"fifo": "as it comes", "late-binding": "ours"}


def flight_scenario() -> Scenario:
    """Return the brokers, links and subscribers of the demo (examples/flights.toml is the same file)."""
    text = files("betimes.demo").joinpath(SCENARIO).read_text(encoding="utf-8")
    world = read_scenario(text, SCENARIO)
    assert isinstance(world, Scenario), "it lists its brokers"
    return world


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What one subscriber, or all of them, wanted and got."""

    wanted: int
    arrived: int
    on_time: int
    earning: float
    on_offer: float  # what all that was wanted would have earned

    @property
    def on_time_share(self) -> float | None:
        """Return the share of what was wanted; None where nothing was."""
        return self.on_time / self.wanted if self.wanted else None


def total(scores: Iterable[Score]) -> Score:
    """Return the score of all together."""
    scores = list(scores)
    return Score(
        wanted=sum(each.wanted for each in scores),
        arrived=sum(each.arrived for each in scores),
        on_time=sum(each.on_time for each in scores),
        earning=sum(each.earning for each in scores),
        on_offer=sum(each.on_offer for each in scores),
    )


class DemoTally:
    """Counts what arrives at the subscribers while departures are replayed."""

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self.published = 0
        self.unexpected = 0  # came twice, or to somebody who had not asked for it
        self.behind_s_max = 0.0  # by how much the replay ran late, at the worst
        self._subscriptions = {each.id: each for each in subscriptions}
        self._awaited: dict[str, set[int]] = {each.id: set() for each in subscriptions}
        self._wanted: Counter[str] = Counter()
        self._on_time: Counter[str] = Counter()

    def publish(self, departure: Departure, behind_s: float) -> None:
        """Note that a departure is published, so long after it was due, and who wants it."""
        self.published += 1
        self.behind_s_max = max(self.behind_s_max, behind_s)
        attributes = departure.attributes
        for name, subscription in self._subscriptions.items():
            if subscription.filter.matches(attributes):
                self._wanted[name] += 1
                self._awaited[name].add(departure.number)

    def arrive(self, subscriber: str, number: int, age_s: float) -> None:
        """Note that a departure reached a subscriber at this age."""
        awaited = self._awaited[subscriber]
        if number not in awaited:
            self.unexpected += 1
            return
        awaited.remove(number)
        self._on_time[subscriber] += age_s <= self._subscriptions[subscriber].qos.delay_s_max

    def scores(self) -> dict[str, Score]:
        """Return what came of it, by subscriber."""
        return {name: self._score(each) for name, each in self._subscriptions.items()}

    def _score(self, subscription: Subscription) -> Score:
        name, price = subscription.id, subscription.qos.price
        wanted, on_time = self._wanted[name], self._on_time[name]
        return Score(
            wanted=wanted,
            arrived=wanted - len(self._awaited[name]),
            on_time=on_time,
            earning=on_time * price,
            on_offer=wanted * price,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """What came of one replay under one strategy."""

    strategy: str
    published: int
    unexpected: int
    behind_s_max: float
    scores: Mapping[str, Score]  # by subscriber
    dropped: Mapping[str, int] = field(default_factory=dict)  # copies that brokers gave up, by reason

    @property
    def total(self) -> Score:
        """Return the score of all subscribers together."""
        return total(self.scores.values())


def outcome(strategy: str, tally: DemoTally, dropped: Mapping[str, int]) -> DemoOutcome:
    """Return what came of a replay, once it is over."""
    return DemoOutcome(
        strategy=strategy,
        published=tally.published,
        unexpected=tally.unexpected,
        behind_s_max=tally.behind_s_max,
        scores=tally.scores(),
        dropped=dict(dropped),
    )
