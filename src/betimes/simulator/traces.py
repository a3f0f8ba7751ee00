"""Traces: recorded events, replayed to simulated brokers, and twins, the networks that they belong to.

A trace holds events as they were published. Each seed replays them at other moments, shifted by up to half of
their publisher's mean gap, so that runs differ by as much luck as two similar days do.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from betimes.kernels.types import Integers, Numbers
from betimes.language.suggestions import did_you_mean
from betimes.model.errors import SettingError
from betimes.model.events import Value
from betimes.model.subscriptions import Subscription
from betimes.model.topology import Publisher, Scenario
from betimes.scheduling.strategies import Strategy
from betimes.simulator.chance import stream
from betimes.simulator.network import Outcome, SimulatedNetwork
from betimes.simulator.worlds import EVENTS_MAX, Publications

Spread = tuple[float, float | None]  # mean and standard deviation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """What one publisher published at one broker, in order; each event stands for so many."""

    publisher: str
    broker: str
    time_s: Numbers
    size_kb: Numbers
    deadline_s: Numbers
    copies: Integers
    topics: tuple[str, ...]
    attributes: tuple[Mapping[str, Value], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A network as it was: its brokers, links and subscribers (`scenario`), and its published events."""

    scenario: Scenario
    traces: tuple[Trace, ...]

    @property
    def events(self) -> int:
        """Return how many events are replayed."""
        return int(sum(trace.copies.sum() for trace in self.traces))

    def faster(self, times: float) -> Twin:
        """Return it with everything published so many times as fast."""
        return Twin(
            scenario=replace(self.scenario, duration_s=self.scenario.duration_s / times),
            traces=tuple(replace(trace, time_s=trace.time_s / times) for trace in self.traces),
        )

    def without_link(self, name: str) -> Twin:
        """Return it without a link, in both directions, as after the loss of a connection."""
        links = [
            link for link in self.scenario.links if name not in (link.name, f"{link.target}->{link.source}")
        ]
        if len(links) == len(self.scenario.links):
            hint = did_you_mean(name, [link.name for link in self.scenario.links], "links")
            raise SettingError("--drop-link", name, "there is no such link", hint)
        return replace(self, scenario=replace(self.scenario, links=tuple(links)))

    def with_subscription(self, subscription: Subscription) -> Twin:
        """Return it with one more subscriber."""
        if any(each.id == subscription.id for each in self.scenario.subscriptions):
            hint = "choose another name"
            raise SettingError("--add-subscriber: name", subscription.id, "there is one of this name", hint)
        if subscription.home not in self.scenario.brokers:
            hint = did_you_mean(subscription.home, self.scenario.brokers, "brokers")
            raise SettingError("--add-subscriber: broker", subscription.home, "no such broker", hint)
        subscriptions = (*self.scenario.subscriptions, subscription)
        return replace(self, scenario=replace(self.scenario, subscriptions=subscriptions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreads:
    """The outcome of several runs: means and standard deviations over seeds; one run has no deviation."""

    on_time_share: Spread
    earning: Spread
    messages: Spread
    subscribers: Mapping[str, Spread]  # on-time share, by subscription


def play(twin: Twin, strategy: Strategy, seed: int) -> Outcome:
    """Run a twin once."""
    if twin.events > EVENTS_MAX:
        raise SettingError("events", twin.events, f"one run takes at most {EVENTS_MAX:,}")
    return SimulatedNetwork(twin.scenario, strategy, seed, published=_published(twin, seed)).run()


def spreads(outcomes: Sequence[Outcome]) -> Spreads:
    """Return means and deviations of the outcomes of several runs."""
    shares: dict[str, list[float]] = {}
    for outcome in outcomes:
        for each in outcome.subscribers:
            shares.setdefault(each.subscriber, []).append(each.on_time_share)
    return Spreads(
        on_time_share=_spread([each.delivery_rate for each in outcomes]),
        earning=_spread([each.earning for each in outcomes]),
        messages=_spread([float(each.messages) for each in outcomes]),
        subscribers={name: _spread(values) for name, values in shares.items()},
    )


def _spread(values: Sequence[float]) -> Spread:
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None


def _published(twin: Twin, seed: int) -> list[Publications]:
    return [_played(trace, twin.scenario.duration_s, seed) for trace in twin.traces]


def _played(trace: Trace, duration_s: float, seed: int) -> Publications:
    """Return a trace as a seed replays it."""
    chance = stream(seed, "trace", trace.broker, trace.publisher)
    places = np.repeat(np.arange(len(trace.time_s)), trace.copies)
    gap_s = duration_s / max(len(places), 1)
    moments = trace.time_s[places] + gap_s * chance.uniform(-0.5, 0.5, len(places))
    # An event that stands for several is published several times: when it was, and in the gap after it.
    behind = np.arange(len(places)) - np.repeat(np.cumsum(trace.copies) - trace.copies, trace.copies)
    moments = np.clip(moments + gap_s * behind, 0.0, duration_s)
    order = np.argsort(moments, kind="stable")
    places, moments = places[order], moments[order]
    chosen = places.tolist()
    return Publications(
        publisher=Publisher(name=trace.publisher, broker=trace.broker, rate_per_s=1.0 / gap_s),
        time_s=moments,
        size_kb=trace.size_kb[places],
        deadline_s=trace.deadline_s[places],
        attributes=[dict(trace.attributes[place]) for place in chosen],
        topics=[trace.topics[place] for place in chosen],
    )
