"""Which worlds are simulated in tests? Small ones, drawn with their faults, and one run with its records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from hypothesis import strategies as st

from betimes.model.distributions import Constant, Exponential, NumberDistribution, Uniform
from betimes.model.filters import EVERYTHING, Box, Filter, Interval
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import Record
from betimes.model.topology import Fault, FaultKind, LayeredWorld, Link, Publisher, Scenario, Tier
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import Outcome, SimulatedNetwork

BROKERS = ("a", "b", "c", "d", "e")
Kind = TypeVar("Kind", bound=Record)
_SIZES: list[NumberDistribution] = [Constant(50.0), Exponential(30.0)]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What came of a run, and what the brokers wrote down meanwhile."""

    outcome: Outcome
    records: list[Record]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [record for record in self.records if isinstance(record, kind)]


def run(scenario: Scenario, strategy: str = "fifo", seed: int = 1, **options: float | int) -> Run:
    records: list[Record] = []
    network = SimulatedNetwork(scenario, strategy_named(strategy), seed, sink=records.append, **options)  # type: ignore[arg-type]
    return Run(outcome=network.run(), records=records)


def layered(
    *,
    duration_s: float = 120.0,
    deadline_s: NumberDistribution | None = None,
    tiers: tuple[Tier, ...] = (),
    faults: tuple[Fault, ...] = (),
    rate_per_s: float = 0.25,
) -> LayeredWorld:
    """Return a small cousin of the paper's network."""
    return LayeredWorld(
        name="small",
        layers=(2, 2, 3),
        subscribers_per_broker=3,
        duration_s=duration_s,
        link_s_per_kb=Uniform(0.050, 0.100),
        attribute_values=Uniform(0.0, 10.0),
        publisher_rate_per_s=rate_per_s,
        deadline_s=deadline_s,
        tiers=tiers,
        faults=faults,
    )


def line(
    *,
    brokers: str = "ab",
    s_per_kb: float = 0.05,
    sd: float = 0.0,
    delay_s_max: float = math.inf,
    duration_s: float = 300.0,
    rate_per_s: float = 0.3,
    processing_s: float = 0.0,
    faults: tuple[Fault, ...] = (),
) -> Scenario:
    """Return brokers in a row: a publisher at the first, a subscriber at the last."""
    links = [
        Link(source=source, target=target, s_per_kb_mean=s_per_kb, s_per_kb_sd=sd)
        for source, target in pairwise(brokers)
    ]
    publisher = Publisher(name="p", broker=brokers[0], rate_per_s=rate_per_s, size_kb=Constant(50.0))
    subscriber = Subscription(id="s", home=brokers[-1], qos=QoS(delay_s_max=delay_s_max))
    return Scenario(
        name="line",
        duration_s=duration_s,
        processing_s=processing_s,
        brokers=tuple(brokers),
        links=tuple(links),
        publishers=(publisher,),
        subscriptions=(subscriber,),
        faults=faults,
    )


def _below(limit: float) -> Filter:
    return Filter((Box((("A", Interval(high=limit, high_inside=False)),)),), f"A < {limit}")


_PAIRS = [(a, b) for a in BROKERS for b in BROKERS if a != b]
_links = st.sets(st.sampled_from(_PAIRS), min_size=3, max_size=12).flatmap(
    lambda pairs: st.tuples(
        *[
            st.builds(
                Link,
                source=st.just(source),
                target=st.just(target),
                s_per_kb_mean=st.sampled_from([0.02, 0.05, 0.1]),
                s_per_kb_sd=st.sampled_from([0.0, 0.02, 0.05]),
                delay_s=st.sampled_from([0.0, 0.5]),
            )
            for source, target in sorted(pairs)
        ]
    )
)
_subscriptions = st.lists(
    st.tuples(
        st.sampled_from(BROKERS),
        st.sampled_from([EVERYTHING, _below(3.0), _below(7.0)]),
        st.sampled_from([5.0, 10.0, 30.0, math.inf]),
        st.sampled_from([0.0, 1.0, 2.0]),
    ),
    min_size=1,
    max_size=8,
).map(
    lambda drawn: tuple(
        Subscription(id=f"s{number}", home=home, filter=wanted, qos=QoS(delay_s_max=delay_s_max, price=price))
        for number, (home, wanted, delay_s_max, price) in enumerate(drawn)
    )
)


@st.composite
def _publishers(draw: st.DrawFn) -> tuple[Publisher, ...]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        broker, name = draw(st.sampled_from(BROKERS)), f"p{number}"
        access = Link(source=name, target=broker, s_per_kb_mean=0.05, s_per_kb_sd=0.02)
        found.append(
            Publisher(
                name=name,
                broker=broker,
                rate_per_s=draw(st.sampled_from([0.2, 0.5])),
                gaps=draw(st.sampled_from(["exponential", "uniform", "constant"])),
                attributes={"A": Uniform(0.0, 10.0)},
                size_kb=draw(st.sampled_from(_SIZES)),
                deadline_s=draw(st.sampled_from([None, Uniform(2.0, 20.0)])),
                access=access if draw(st.booleans()) else None,
            )
        )
    return tuple(found)


def _faults(names: dict[FaultKind, tuple[str, ...]]) -> st.SearchStrategy[tuple[Fault, ...]]:
    """Draw faults that may overlap, also of the same thing; some last for ever."""
    one = st.sampled_from([kind for kind, known in names.items() if known]).flatmap(
        lambda kind: st.builds(
            Fault,
            kind=st.just(kind),
            name=st.sampled_from(names[kind]),
            at_s=st.floats(0.0, 50.0),
            lasts_s=st.one_of(st.floats(0.0, 30.0), st.just(math.inf)),
        )
    )
    return st.lists(one, min_size=1, max_size=5).map(tuple)


@st.composite
def meshes(draw: st.DrawFn, *, faulty: bool = False) -> Scenario:
    """Draw any network of five brokers: loops, dead ends and brokers without a way included."""
    links, publishers = draw(_links), draw(_publishers())
    access = [each.access for each in publishers if each.access is not None]
    names = {
        FaultKind.LINK: tuple(link.name for link in (*links, *access)),
        FaultKind.BROKER: (*BROKERS, *(link.source for link in access)),
    }
    return Scenario(
        name="mesh",
        duration_s=40.0,
        processing_s=draw(st.sampled_from([0.0, 0.002, 0.5])),
        brokers=BROKERS,
        links=links,
        publishers=publishers,
        subscriptions=draw(_subscriptions),
        faults=draw(_faults(names)) if faulty else (),
    )
