"""The [generate] table of a scenario file. The default of every number is the paper's (000, section 6.1)."""

from __future__ import annotations

from itertools import pairwise

from betimes.language.files.distributions import number_spread, plain_number_spread
from betimes.language.files.scenario_network import (
    BROKERS_MAX,
    LINKS_MAX,
    SUBSCRIBERS_MAX,
    duration,
    frequency,
    gaps,
    read_faults,
    size,
    speed,
)
from betimes.language.files.table_reader import (
    PRICE_MAX,
    TomlTable,
    WrongValueError,
    count_between,
    name,
    number,
    number_between,
    positive,
)
from betimes.model.distributions import Constant, NumberDistribution, Uniform
from betimes.model.topology import LayeredWorld, Tier

LAYERS_MAX = 100
ATTRIBUTES_MAX = 100
TIERS_MAX = 100

_LINK_SPEED_LEAST_S_PER_KB = 0.001  # where 000's draws are cut off


def read_world(top: TomlTable, *, title: str, duration_s: float, processing_s: float) -> LayeredWorld:
    """Return the recipe under [generate]; mistakes are noted in the table.

    If neither deadline nor tiers are given, the publishers' deadline is the paper's: 10 to 30 seconds.
    """
    table = top.table("generate") or TomlTable({}, "generate", top.mistakes)
    tiers = _tiers(table)
    deadline: NumberDistribution | None = None if "tiers" in table else Uniform(10.0, 30.0)
    per_kb = number_spread(speed, _LINK_SPEED_LEAST_S_PER_KB)
    world = LayeredWorld(
        name=title,
        duration_s=duration_s,
        processing_s=processing_s,
        layers=table.optional("layers", _layers, (4, 4, 8, 16)),
        upstream=table.optional("upstream", count_between(1, BROKERS_MAX), 2),
        subscribers_per_broker=table.optional(
            "subscribers_per_broker", count_between(1, SUBSCRIBERS_MAX), 10
        ),
        link_s_per_kb=table.optional("link_mean", per_kb, Uniform(0.050, 0.100)),
        link_s_per_kb_sd=table.optional("link_deviation", speed, 0.020),
        publisher_rate_per_s=table.optional("rate", positive(frequency), 15 / 60),
        gaps=table.optional("gaps", gaps, "uniform"),
        size_kb=table.optional("size", number_spread(size), Constant(50.0)),
        attributes=table.optional("attributes", _names, ("A1", "A2")),
        attribute_values=table.optional("values", plain_number_spread, Uniform(0.0, 10.0)),
        deadline_s=table.optional("deadline", number_spread(duration), deadline),
        tiers=tiers,
        faults=read_faults(top),
    )
    _check_size(table, world)
    table.close()
    return world


def _tiers(table: TomlTable) -> tuple[Tier, ...]:
    tiers: list[Tier] = []
    hint_if_none = 'write tiers = [{ max_delay = "10s", price = 3 }]' if "tiers" in table else ""
    for inner in table.tables("tiers", TIERS_MAX, hint_if_none):
        tiers.append(
            Tier(
                delay_s_max=inner.required("max_delay", positive(duration), 1.0, '"10s"'),
                price=inner.required("price", number_between(0.0, PRICE_MAX), 1.0, "3"),
                weight=inner.optional("weight", positive(number), 1.0),
            )
        )
        inner.close()
    return tuple(tiers)


def _layers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not 2 <= len(value) <= LAYERS_MAX:
        raise WrongValueError(
            f"a list of 2 to {LAYERS_MAX} layers was expected here", "write layers = [4, 4, 8, 16]"
        )
    read = count_between(1, BROKERS_MAX)
    layers = tuple(read(layer) for layer in value)
    if sum(layers) > BROKERS_MAX:
        raise WrongValueError(f"the layers have {sum(layers):,} brokers, and {BROKERS_MAX:,} are allowed")
    return layers


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= ATTRIBUTES_MAX:
        problem = f"a list of 1 to {ATTRIBUTES_MAX} attribute names was expected here"
        raise WrongValueError(problem, 'write attributes = ["A1", "A2"]')
    names = tuple(name(item) for item in value)
    if len(set(names)) < len(names):
        raise WrongValueError("an attribute is named twice")
    return names


def _check_size(table: TomlTable, world: LayeredWorld) -> None:
    """Note if a recipe asks for more than is allowed, or for neighbours that do not exist."""
    subscribers = world.layers[-1] * world.subscribers_per_broker
    if subscribers > SUBSCRIBERS_MAX:
        problem = f"this makes {subscribers:,} subscribers, and {SUBSCRIBERS_MAX:,} are allowed"
        table.complain("subscribers_per_broker", problem)
    links = world.layers[0] * world.layers[1] + sum(layer * world.upstream for layer in world.layers[2:])
    if links > LINKS_MAX:
        table.complain("layers", f"this makes {links:,} links, and {LINKS_MAX:,} are allowed")
    narrowest = min((above for above, _ in pairwise(world.layers[1:])), default=world.upstream)
    if world.upstream > narrowest:
        problem = f"{world.upstream} neighbours upstream are more than the {narrowest} brokers of a layer"
        table.complain("upstream", problem)
