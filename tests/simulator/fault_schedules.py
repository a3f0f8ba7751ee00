"""What can go wrong at once? Small networks with everything that fails in them, each from one number."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from betimes.model.distributions import Constant, Exponential, NumberDistribution, Uniform
from betimes.model.filters import EVERYTHING, Box, Filter, Interval
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.topology import Fault, FaultKind, Link, Publisher, Scenario
from betimes.scheduling.strategies import STRATEGIES

DURATION_S = 30.0
STRATEGY_NAMES = sorted(STRATEGIES)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A network, what fails in it and when, and how its brokers work."""

    seed: int
    scenario: Scenario
    strategy: str
    messages_max: int
    learn_every_s: float | None


def schedule(seed: int) -> Schedule:
    """Return the schedule of this number; strategies take turns."""
    chance = random.Random(seed)
    brokers = tuple("abcdef"[: chance.randint(2, 6)])
    links = _links(chance, brokers)
    publishers = tuple(_publisher(chance, f"p{number}", brokers) for number in range(chance.randint(1, 3)))
    access = [each.access for each in publishers if each.access is not None]
    scenario = Scenario(
        name=f"schedule {seed}",
        duration_s=DURATION_S,
        processing_s=chance.choice([0.0, 0.002, 0.5]),
        brokers=brokers,
        links=links,
        publishers=publishers,
        subscriptions=tuple(
            _subscription(chance, f"s{number}", brokers) for number in range(chance.randint(1, 8))
        ),
        faults=_faults(
            chance,
            [link.name for link in (*links, *access)],
            [*brokers, *(link.source for link in access)],
        ),
    )
    return Schedule(
        seed=seed,
        scenario=scenario,
        strategy=STRATEGY_NAMES[seed % len(STRATEGY_NAMES)],
        messages_max=chance.choice([1, 3, 100_000, 100_000]),
        learn_every_s=chance.choice([None, None, None, 3.0]),
    )


def _links(chance: random.Random, brokers: tuple[str, ...]) -> tuple[Link, ...]:
    """Join all brokers by a tree, mostly both ways, and add ways round it."""
    pairs = {(chance.choice(brokers[:at]), brokers[at]) for at in range(1, len(brokers))}
    pairs |= {(target, source) for source, target in list(pairs) if chance.random() < 0.8}
    for _ in range(chance.randint(0, 2 * len(brokers))):
        pairs.add((chance.choice(brokers), chance.choice(brokers)))
    return tuple(
        Link(
            source=source,
            target=target,
            s_per_kb_mean=chance.choice([0.01, 0.05, 0.1]),
            s_per_kb_sd=chance.choice([0.0, 0.02, 0.05]),
            delay_s=chance.choice([0.0, 0.5]),
        )
        for source, target in sorted(pairs)
        if source != target
    )


def _publisher(chance: random.Random, name: str, brokers: tuple[str, ...]) -> Publisher:
    broker = chance.choice(brokers)
    access = Link(source=name, target=broker, s_per_kb_mean=0.05, s_per_kb_sd=0.02)
    sizes: list[NumberDistribution] = [Constant(50.0), Exponential(30.0)]
    return Publisher(
        name=name,
        broker=broker,
        rate_per_s=chance.choice([0.3, 1.0]),
        gaps=chance.choice(["exponential", "uniform", "constant"]),
        attributes={"A": Uniform(0.0, 10.0)},
        size_kb=chance.choice(sizes),
        deadline_s=chance.choice([None, Uniform(2.0, 20.0)]),
        access=access if chance.random() < 0.3 else None,
    )


def _subscription(chance: random.Random, name: str, brokers: tuple[str, ...]) -> Subscription:
    limit = chance.choice([3.0, 7.0, None])
    below = Filter((Box((("A", Interval(high=limit or 0.0, high_inside=False)),)),), f"A < {limit}")
    bound_s, price = chance.choice([2.0, 5.0, 15.0, math.inf]), chance.choice([0.0, 1.0, 2.0])
    return Subscription(
        id=name,
        home=chance.choice(brokers),
        filter=EVERYTHING if limit is None else below,
        qos=QoS(delay_s_max=bound_s, price=price),
    )


def _faults(chance: random.Random, links: list[str], brokers: list[str]) -> tuple[Fault, ...]:
    """Draw single faults, flapping, and storms in which many things go at one moment."""
    faults: list[Fault] = []
    for _ in range(chance.randint(1, 4)):
        at_s, kind = chance.uniform(0.0, DURATION_S), chance.choice(["one", "flapping", "storm"])
        if kind == "one":
            lasts_s = chance.choice([0.0, chance.uniform(0.0, 10.0), math.inf])
            faults.append(_fault(chance, links, brokers, at_s, lasts_s))
        elif kind == "flapping":
            first = _fault(chance, links, brokers, at_s, chance.uniform(0.01, 0.5))
            faults += [_later(first, number * chance.uniform(0.2, 1.0)) for number in range(6)]
        else:
            ends_s = chance.choice([None, chance.uniform(0.5, 8.0)])  # together, or each in its own time
            for _ in range(chance.randint(2, 6)):
                lasts_s = chance.uniform(0.5, 8.0) if ends_s is None else ends_s
                faults.append(_fault(chance, links, brokers, at_s, lasts_s))
    return tuple(faults)


def _fault(chance: random.Random, links: list[str], brokers: list[str], at_s: float, lasts_s: float) -> Fault:
    kind = FaultKind.LINK if links and chance.random() < 0.6 else FaultKind.BROKER
    name = chance.choice(links if kind is FaultKind.LINK else brokers)
    return Fault(kind=kind, name=name, at_s=at_s, lasts_s=lasts_s)


def _later(fault: Fault, by_s: float) -> Fault:
    return Fault(kind=fault.kind, name=fault.name, at_s=fault.at_s + by_s, lasts_s=fault.lasts_s)
