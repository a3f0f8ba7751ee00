"""The subscribers of the live demo, and the counts of what each wanted and got in time.

A departure counts once for a subscriber, and is on time by the clock of the process that both published and
received it. Time is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.resources import files

from betimes.demo.flights import Departure
from betimes.language.files.scenario_file import read_scenario
from betimes.model.subscriptions import Subscription
from betimes.model.topology import Scenario

SCENARIO = "flights.toml"
STRATEGIES = {"fifo": "first come, first served", "late-binding": "ours"}


def flight_scenario() -> Scenario:
    """Return the brokers, links and subscribers of the demo (examples/flights.toml is the same file)."""
    text = files("betimes.demo").joinpath(SCENARIO).read_text(encoding="utf-8")
    world = read_scenario(text, SCENARIO)
    assert isinstance(world, Scenario), "it lists its brokers"
    return world


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The counts of one subscriber, or of all of them."""

    wanted: int
    arrived: int
    on_time: int
    earning: float
    on_offer: float  # the earning if every wanted message were on time

    @property
    def on_time_share(self) -> float | None:
        """Return the share of wanted messages that were on time; None if there were none."""
        return self.on_time / self.wanted if self.wanted else None


class DemoTally:
    """Counts what arrives at the subscribers while departures are replayed."""

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self.published = 0
        self.unexpected = 0  # arrived twice, or at a subscriber whose filter does not match
        self.behind_s_max = 0.0  # the largest delay of the replay itself
        self._subscriptions = {each.id: each for each in subscriptions}
        self._awaited: dict[str, set[int]] = {each.id: set() for each in subscriptions}
        self._wanted: Counter[str] = Counter()
        self._on_time: Counter[str] = Counter()

    def publish(self, departure: Departure, behind_s: float) -> None:
        """Count a published departure, its delay after it was due, and the subscribers that match."""
        self.published += 1
        self.behind_s_max = max(self.behind_s_max, behind_s)
        attributes = departure.attributes
        for name, subscription in self._subscriptions.items():
            if subscription.filter.matches(attributes):
                self._wanted[name] += 1
                self._awaited[name].add(departure.number)

    def arrive(self, subscriber: str, number: int, age_s: float) -> None:
        """Count a departure that reached a subscriber at this age."""
        awaited = self._awaited[subscriber]
        if number not in awaited:
            self.unexpected += 1
            return
        awaited.remove(number)
        self._on_time[subscriber] += age_s <= self._subscriptions[subscriber].qos.delay_s_max

    def scores(self) -> dict[str, Score]:
        """Return the scores by subscriber."""
        return {
            name: Score(
                wanted=self._wanted[name],
                arrived=self._wanted[name] - len(self._awaited[name]),
                on_time=self._on_time[name],
                earning=self._on_time[name] * each.qos.price,
                on_offer=self._wanted[name] * each.qos.price,
            )
            for name, each in self._subscriptions.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """The result of one replay under one strategy."""

    strategy: str
    published: int
    unexpected: int
    behind_s_max: float
    scores: Mapping[str, Score]  # by subscriber
    dropped: Mapping[str, int] = field(default_factory=dict)  # copies that brokers dropped, by reason

    @property
    def total(self) -> Score:
        """Return the score of all subscribers together."""
        rows = [asdict(each) for each in self.scores.values()]
        return Score(**{each.name: sum(row[each.name] for row in rows) for each in fields(Score)})


def outcome(strategy: str, tally: DemoTally, dropped: Mapping[str, int]) -> DemoOutcome:
    """Return the result of a replay that is over."""
    return DemoOutcome(
        strategy=strategy,
        published=tally.published,
        unexpected=tally.unexpected,
        behind_s_max=tally.behind_s_max,
        scores=tally.scores(),
        dropped=dict(dropped),
    )
