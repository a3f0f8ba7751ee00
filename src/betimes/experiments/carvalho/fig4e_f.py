"""Figure 4 of 004, comparison: what each scheme of finding a route costs, and how good its routes are.

The schemes are IndiQoS with 1 and 3 replicas, flooding of network state and of requests, and both of ours.
Every message of an accepted request counts, answers and dead ends included; for flooding of state also the
updates that it causes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.carvalho.flooding import FNS, FNS_EVERY
from betimes.experiments.carvalho.network import (
    COORD,
    COUNTED,
    DIRECT,
    EQUAL_LOAD,
    FR,
    INDIQOS,
    TYPES,
    run_of,
    run_row,
)
from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Point,
    Row,
    SeedSpread,
    fitting,
    panels_over,
    ratio,
    spread_point,
    value,
)

SATURATED = 0  # accepted_max: until the network is full
ONE, THREE = "IndiQoS, 1 replica", "IndiQoS, 3 replicas"
FLOODED = ("FNS, full links over a tree", "FNS, every change over every link", "FR")
SCHEMES: dict[str, dict[str, Any]] = {
    ONE: {"scheme": INDIQOS, "replicas": 1},
    THREE: {"scheme": INDIQOS, "replicas": 3},
    FLOODED[0]: {"scheme": FNS, "replicas": 1},
    FLOODED[1]: {"scheme": FNS_EVERY, "replicas": 1},
    FLOODED[2]: {"scheme": FR, "replicas": 1},
    DIRECT: {"scheme": DIRECT, "replicas": 1},
    COORD: {"scheme": COORD, "replicas": 1},
}
LOADS = (EQUAL_LOAD, SATURATED)


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every scheme, at equal load and until the network is full."""
    return [
        run_of(plan, seed, accepted_max=load, **scheme)
        for seed in plan.seeds
        for load in LOADS
        for scheme in SCHEMES.values()
        if not plan.quick or scheme["scheme"] != FNS_EVERY
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return one point for each scheme: latency over messages, at equal load and at saturation."""
    found = []
    for panel, load in (("equal", EQUAL_LOAD), ("full", SATURATED)):
        for curve, scheme in _schemes_in(results):
            here = {**scheme, "accepted_max": load}
            messages, latency = (value(results, y, **here) for y in ("messages", "latency_ms"))
            found.append(spread_point(panel, curve, messages.mean, latency))
    for number, (curve, scheme) in enumerate(SCHEMES.items(), 1):
        if (curve, scheme) in _schemes_in(results):
            accepted = value(results, "accepted", **scheme, accepted_max=SATURATED)
            found.append(spread_point("accepted", curve, number, accepted))
    return found


def _schemes_in(results: Sequence[Row]) -> list[tuple[str, dict[str, Any]]]:
    """Return the schemes that were run: a quick run leaves some out."""
    return [(curve, scheme) for curve, scheme in SCHEMES.items() if fitting(results, scheme)]


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.3, and this project's; a quick run leaves a scheme out."""
    found = [*papers_claims(results), *own_claims(results)]
    return [claim for claim in found if "nan" not in claim.measured]


def times(results: Sequence[Row], y: str, load: int, above: str, below: str) -> SeedSpread:
    """Return the ratio of two schemes at one load."""
    return ratio(
        results,
        y,
        {**SCHEMES[above], "accepted_max": load},
        {**SCHEMES[below], "accepted_max": load},
    )


def papers_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.3."""
    tree, every, requested = (times(results, "messages", SATURATED, name, ONE) for name in FLOODED)
    tree_at_equal_load = times(results, "messages", EQUAL_LOAD, FLOODED[0], ONE)
    slower = times(results, "latency_ms", EQUAL_LOAD, THREE, FLOODED[2])
    saved = times(results, "messages", EQUAL_LOAD, FLOODED[2], THREE)
    return [
        Claim(
            text="flooding network state costs five times IndiQoS's messages (1 replica), updates flooded "
            "only when a link fills, over a tree",
            published="5",
            measured=f"{tree}; at equal load, where few links are full, {tree_at_equal_load}",
            held=tree.near(5.0),
        ),
        Claim(
            text="the same, every change flooded over every link: at least five times",
            published="5",
            measured=str(every),
            held=every.mean >= 5.0,
        ),
        Claim(
            text="flooding requests costs at least five times IndiQoS's messages (1 replica)",
            published="5",
            measured=str(requested),
            held=requested.mean >= 5.0,
        ),
        Claim(
            text="IndiQoS (3 replicas) is slower than complete knowledge by less than it saves in messages",
            published="the increase in latency is smaller than the signalling gains",
            measured=f"latency {slower} times; messages of FR {saved} times",
            held=1.0 < slower.mean < saved.mean,
        ),
    ]


def own_claims(results: Sequence[Row]) -> list[Claim]:
    """Return this project's claims."""
    more = times(results, "accepted", SATURATED, COORD, THREE)
    faster = [times(results, "latency_ms", load, COORD, THREE) for load in LOADS]
    cheaper = [times(results, "messages", load, COORD, THREE) for load in LOADS]
    known = times(results, "latency_ms", EQUAL_LOAD, COORD, FLOODED[0])
    return [
        Claim(
            text="ours: coord with 1 replica accepts at least 3 times what IndiQoS with 3 replicas does",
            measured=f"{more} times",
            held=more.mean >= 3.0,
        ),
        Claim(
            text="ours: with lower latency and fewer messages, at equal load and with all that it accepts",
            measured=f"latency {faster[0]} and {faster[1]} times; "
            f"messages {cheaper[0]} and {cheaper[1]} times",
            held=all(each.mean < 1.0 for each in (*faster, *cheaper)),
        ),
        Claim(
            text="ours: coord comes within half again of the latency of complete knowledge, at equal load",
            measured=f"{known} times",
            held=known.mean <= 1.5,
        ),
    ]


FIGURE = Figure(
    name="carvalho-4e-f",
    title="IndiQoS, flooding and ours (Carvalho et al., figure 4)",
    about="what finding a route costs in messages, and the latency of the route, by scheme",
    panels=(
        *panels_over(
            COUNTED,
            ("equal", f"{TYPES} types, at {EQUAL_LOAD} accepted", "mean latency (ms)"),
            ("full", f"{TYPES} types, all that it accepts", "mean latency (ms)"),
            x_is_logarithmic=True,
        ),
        *panels_over(
            "scheme, in the order of the legend",
            ("accepted", "subscriptions accepted, of 1,520", "accepted until 100 refusals in a row"),
        ),
    ),
    ours=(DIRECT, COORD),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
