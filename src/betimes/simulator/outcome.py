"""The outcome of a simulation: counted while it runs, and returned as one value."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import Reason
from betimes.scheduling.demand_table import Demand
from betimes.scheduling.effects import Deliver, Drop
from betimes.simulator.reservations import GuaranteedSubscriber


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberOutcome:
    """What one subscriber received."""

    subscriber: str
    wanted: int
    in_time: int
    earning: float

    @property
    def on_time_share(self) -> float:
        """Return the share of wanted events that arrived in time (1 where no event was wanted)."""
        return self.in_time / self.wanted if self.wanted else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a run; the paper's three measures first (000, section 6.1)."""

    delivery_rate: float  # eq. 1
    earning: float  # eq. 2
    messages: int  # received by all brokers
    published: int
    wanted: int
    in_time: int
    out_of_order: int
    age_s_mean: float
    drops: dict[Reason, int]  # subscribers that missed an event, by reason
    subscribers: tuple[SubscriberOutcome, ...]
    steps: int  # actions that the simulator ran
    guarantees: tuple[GuaranteedSubscriber, ...] = ()  # of the subscribers that asked for one


class OutcomeTally:
    """Counts while a run goes on."""

    def __init__(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self._wanted: Counter[str] = Counter()
        self._in_time: Counter[str] = Counter()
        self._drops: Counter[Reason] = Counter()
        self._age_s = 0.0
        self._out_of_order = 0
        self.published = 0
        self.messages = 0

    def publish(self, demand: Demand) -> None:
        """Count an event and its subscribers."""
        self.published += 1
        self._wanted.update([each.id for found in demand.at_home.values() for each in found])

    def deliver(self, effect: Deliver) -> None:
        """Count a delivery."""
        for subscription in effect.subscriptions:
            self._in_time[subscription.id] += 1
        self._age_s += effect.age_s * len(effect.subscriptions)
        self._out_of_order += len(effect.out_of_order)

    def drop(self, effect: Drop) -> None:
        """Count a dropped message."""
        self._drops[effect.reason] += sum(effect.subscribers)

    def outcome(self, steps: int) -> Outcome:
        """Return the outcome."""
        wanted, in_time = self._wanted.total(), self._in_time.total()
        subscribers = tuple(
            SubscriberOutcome(
                subscriber=each.id,
                wanted=self._wanted[each.id],
                in_time=self._in_time[each.id],
                earning=self._in_time[each.id] * each.qos.price,
            )
            for each in self._subscriptions
        )
        return Outcome(
            delivery_rate=in_time / wanted if wanted else 1.0,
            earning=sum(each.earning for each in subscribers),
            messages=self.messages,
            published=self.published,
            wanted=wanted,
            in_time=in_time,
            out_of_order=self._out_of_order,
            age_s_mean=self._age_s / in_time if in_time else 0.0,
            drops=dict(self._drops),
            subscribers=subscribers,
            steps=steps,
        )
