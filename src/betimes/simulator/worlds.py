"""The scenario that a seed makes of a recipe, and the events published in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from betimes.model.distributions import Constant, Exponential, NumberDistribution, Uniform
from betimes.model.errors import SettingError
from betimes.model.events import Value
from betimes.model.filters import Box, Filter, Interval
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.topology import FaultKind, LayeredWorld, Link, Publisher, Scenario, Tier
from betimes.simulator.chance import draw_numbers, draw_values, stream

EVENTS_MAX = 10_000_000  # published in one run: some gigabytes, and minutes of work


def check_amount(world: Scenario | LayeredWorld) -> None:
    """Reject a world with more events than one run can take."""
    rates = (
        [each.rate_per_s for each in world.publishers]
        if isinstance(world, Scenario)
        else [world.publisher_rate_per_s] * world.layers[0]
    )
    events = sum(rates) * world.duration_s
    if not events <= EVENTS_MAX:
        raise SettingError(
            "duration times publishing rates",
            f"{events:.3g} events",
            f"one run takes at most {EVENTS_MAX:,}",
            "publish less often, or for less time",
        )


def make_scenario(recipe: LayeredWorld, seed: int) -> Scenario:
    """Return the layered world of 000, section 6.1, of a seed."""
    layers = [
        tuple(f"b{depth + 1}.{number + 1}" for number in range(size))
        for depth, size in enumerate(recipe.layers)
    ]
    scenario = Scenario(
        name=recipe.name,
        duration_s=recipe.duration_s,
        processing_s=recipe.processing_s,
        brokers=tuple(name for layer in layers for name in layer),
        links=_layer_links(recipe, layers, seed),
        publishers=_publishers(recipe, layers[0], seed),
        subscriptions=_subscriptions(recipe, layers[-1], seed),
        faults=recipe.faults,
    )
    _check_faults(scenario)
    return scenario


def _check_faults(scenario: Scenario) -> None:
    """Reject a fault of a part that this seed did not make: only now are the names known."""
    access = [each.access for each in scenario.publishers if each.access is not None]
    known = {
        FaultKind.BROKER: list(scenario.brokers),
        FaultKind.LINK: [link.name for link in (*scenario.links, *access)],
    }
    for fault in scenario.faults:
        if fault.name not in known[fault.kind]:
            examples = ", ".join(known[fault.kind][:3])
            hint = f"a {fault.kind} of this world is called, for example, {examples}"
            raise SettingError(f"fault of a {fault.kind}", fault.name, "there is none of this name", hint)


def _layer_links(recipe: LayeredWorld, layers: list[tuple[str, ...]], seed: int) -> tuple[Link, ...]:
    ways = stream(seed, "topology")
    pairs = [(upper, lower) for lower in layers[1] for upper in layers[0]] if len(layers) > 1 else []
    for above, layer in pairwise(layers[1:]):
        for lower in layer:
            chosen = ways.choice(len(above), size=min(recipe.upstream, len(above)), replace=False)
            pairs += [(above[pick], lower) for pick in sorted(chosen.tolist())]
    means = draw_numbers(stream(seed, "link means"), recipe.link_s_per_kb, len(pairs))
    return tuple(
        Link(source=upper, target=lower, s_per_kb_mean=mean, s_per_kb_sd=recipe.link_s_per_kb_sd)
        for (upper, lower), mean in zip(pairs, means.tolist(), strict=True)
    )


def _publishers(recipe: LayeredWorld, brokers: tuple[str, ...], seed: int) -> tuple[Publisher, ...]:
    means = draw_numbers(stream(seed, "access means"), recipe.link_s_per_kb, len(brokers))
    return tuple(
        Publisher(
            name=f"p{number + 1}",
            broker=broker,
            rate_per_s=recipe.publisher_rate_per_s,
            gaps=recipe.gaps,
            attributes=dict.fromkeys(recipe.attributes, recipe.attribute_values),
            size_kb=recipe.size_kb,
            deadline_s=recipe.deadline_s,
            access=Link(
                source=f"p{number + 1}",
                target=broker,
                s_per_kb_mean=mean,
                s_per_kb_sd=recipe.link_s_per_kb_sd,
            ),
        )
        for number, (broker, mean) in enumerate(zip(brokers, means.tolist(), strict=True))
    )


def _subscriptions(recipe: LayeredWorld, brokers: tuple[str, ...], seed: int) -> tuple[Subscription, ...]:
    """Return filters `A1 < x1 AND A2 < x2`, as boxes: they need no parsing."""
    count = len(brokers) * recipe.subscribers_per_broker
    chance = stream(seed, "subscriptions")
    below = [draw_numbers(chance, recipe.attribute_values, count).tolist() for _ in recipe.attributes]
    tiers = _tiers(recipe.tiers, count, seed)
    return tuple(
        Subscription(
            id=f"s{number + 1}",
            home=brokers[number // recipe.subscribers_per_broker],
            filter=_all_below(recipe.attributes, tuple(limits[number] for limits in below)),
            qos=QoS(delay_s_max=tier.delay_s_max, price=tier.price) if tier else QoS(),
        )
        for number, tier in enumerate(tiers)
    )


def _tiers(tiers: tuple[Tier, ...], count: int, seed: int) -> list[Tier | None]:
    if not tiers:
        return [None] * count
    weights = np.array([tier.weight for tier in tiers])
    picks = stream(seed, "tiers").choice(len(tiers), size=count, p=weights / weights.sum())
    return [tiers[pick] for pick in picks.tolist()]


def _all_below(attributes: tuple[str, ...], limits: tuple[float, ...]) -> Filter:
    pairs = sorted(zip(attributes, limits, strict=True))
    box = Box(tuple((name, Interval(high=limit, high_inside=False)) for name, limit in pairs))
    return Filter((box,), " AND ".join(f"{name} < {limit!r}" for name, limit in pairs))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Publications:
    """All events of one publisher."""

    publisher: Publisher
    time_s: NDArray[np.float64]
    size_kb: NDArray[np.float64]
    deadline_s: NDArray[np.float64]
    attributes: list[dict[str, Value]]
    topics: list[str] | None = None  # None: topics do not matter


def publications(scenario: Scenario, seed: int) -> Iterator[Publications]:
    """Yield the events of each publisher in the time of the scenario, whatever the strategy."""
    check_amount(scenario)
    for publisher in scenario.publishers:
        times = _times(publisher, scenario.duration_s, stream(seed, "gaps", publisher.name))
        count = len(times)
        deadlines = (
            draw_numbers(stream(seed, "deadlines", publisher.name), publisher.deadline_s, count)
            if publisher.deadline_s is not None
            else np.full(count, np.inf)
        )
        yield Publications(
            publisher=publisher,
            time_s=times,
            size_kb=draw_numbers(stream(seed, "sizes", publisher.name), publisher.size_kb, count),
            deadline_s=deadlines,
            attributes=descriptions(publisher, seed, count),
        )


def descriptions(publisher: Publisher, seed: int, count: int) -> list[dict[str, Value]]:
    """Return the attributes of the first events of a publisher; their number does not depend on the run."""
    columns = [
        draw_values(stream(seed, "attributes", publisher.name, name), spread, count)
        for name, spread in publisher.attributes.items()
    ]
    names = tuple(publisher.attributes)
    if not columns:
        return [{} for _ in range(count)]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _gaps(publisher: Publisher) -> NumberDistribution:
    mean_s = 1.0 / publisher.rate_per_s
    match publisher.gaps:
        case "uniform":
            return Uniform(0.0, 2.0 * mean_s)
        case "constant":
            return Constant(mean_s)
        case _:
            return Exponential(mean_s)


def _times(publisher: Publisher, duration_s: float, chance: np.random.Generator) -> NDArray[np.float64]:
    """Return the times of publishing: gaps drawn one after the other until the time is over."""
    block = int(duration_s * publisher.rate_per_s) + 64
    phase = chance.uniform(0.0, 1.0 / publisher.rate_per_s) if publisher.gaps == "constant" else 0.0
    parts, end_s = [], phase
    while end_s <= duration_s:
        times = end_s + np.cumsum(draw_numbers(chance, _gaps(publisher), block))
        parts.append(times)
        end_s = float(times[-1])
    every = np.concatenate(parts) if parts else np.empty(0)
    return every[every <= duration_s]
