"""What does each way to find a way cost, and how good is what it finds (004, figure 4, comparison)?

IndiQoS with 1 and 3 replicas, flooding of network state and of requests, and both of ours. Counted is every
message of an accepted request, answers and dead ends included; for flooding of state also the updates that
it causes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.carvalho_flooding import FNS, FNS_EVERY
from betimes.experiments.carvalho_network import (
    COORD,
    COUNTED,
    DIRECT,
    EQUAL_LOAD,
    FR,
    INDIQOS,
    TYPES,
    ratio,
    run_of,
    run_row,
    value,
)
from betimes.experiments.figures import Claim, Figure, Panel, Plan, Point, Row, Spread, by_seed

SATURATED = 0  # accepted_max: as many as there is room for
SCHEMES: dict[str, dict[str, Any]] = {
    "IndiQoS, 1 replica": {"scheme": INDIQOS, "replicas": 1},
    "IndiQoS, 3 replicas": {"scheme": INDIQOS, "replicas": 3},
    "FNS, full links over a tree": {"scheme": FNS, "replicas": 1},
    "FNS, every change over every link": {"scheme": FNS_EVERY, "replicas": 1},
    "FR": {"scheme": FR, "replicas": 1},
    "direct": {"scheme": DIRECT, "replicas": 1},
    "coord": {"scheme": COORD, "replicas": 1},
}
ONE, THREE = SCHEMES["IndiQoS, 1 replica"], SCHEMES["IndiQoS, 3 replicas"]
LOADS = (EQUAL_LOAD, SATURATED)


def rows(plan: Plan) -> list[dict[str, Any]]:
    """Return every scheme, at equal load and until it is full."""
    return [
        run_of(seed, accepted_max=load, **scheme)
        for seed in plan.seeds
        for load in LOADS
        for scheme in SCHEMES.values()
        if not plan.quick or scheme["scheme"] != FNS_EVERY
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return one point for each scheme: latency over messages, at equal load and at saturation."""
    found = []
    for panel, load in (("equal", EQUAL_LOAD), ("full", SATURATED)):
        for curve, scheme in SCHEMES.items():
            here = {**scheme, "accepted_max": load}
            if not by_seed(results, "messages", here):
                continue  # not in a quick look
            messages, latency = (value(results, y, **here) for y in ("messages", "latency_ms"))
            found.append(
                Point(
                    panel=panel,
                    curve=curve,
                    x=messages.mean,
                    y=latency.mean,
                    sd=latency.sd,
                    seeds=latency.count,
                )
            )
    for number, (curve, scheme) in enumerate(SCHEMES.items(), 1):
        here = {**scheme, "accepted_max": SATURATED}
        if not by_seed(results, "accepted", here):
            continue
        accepted = value(results, "accepted", **here)
        found.append(
            Point(
                panel="accepted", curve=curve, x=number, y=accepted.mean, sd=accepted.sd, seeds=accepted.count
            )
        )
    return found


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return what section 6.3 says, and what ours adds."""

    def at(load: int, **scheme: Any) -> dict[str, Any]:
        return {**scheme, "accepted_max": load}

    def times(y: str, load: int, above: dict[str, Any], below: dict[str, Any]) -> Spread:
        return ratio(results, y, at(load, **above), at(load, **below))

    flooded = {name: times("messages", SATURATED, SCHEMES[name], ONE) for name in list(SCHEMES)[2:5]}
    tree, every, requested = flooded.values()
    tree_at_equal_load = times("messages", EQUAL_LOAD, SCHEMES["FNS, full links over a tree"], ONE)
    slower = times("latency_ms", EQUAL_LOAD, THREE, SCHEMES["FR"])
    saved = times("messages", EQUAL_LOAD, SCHEMES["FR"], THREE)
    coord = SCHEMES["coord"]
    more = ratio(results, "accepted", at(SATURATED, **coord), at(SATURATED, **THREE))
    faster = {load: times("latency_ms", load, coord, THREE) for load in LOADS}
    cheaper = {load: times("messages", load, coord, THREE) for load in LOADS}
    known = times("latency_ms", EQUAL_LOAD, coord, SCHEMES["FNS, full links over a tree"])
    found = [
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
            text="IndiQoS (3 replicas) is slower than who knows everything by less than it saves in messages",
            published="the increase in latency is smaller than the signalling gains",
            measured=f"latency {slower} times; messages of FR {saved} times",
            held=1.0 < slower.mean < saved.mean,
        ),
        Claim(
            text="ours: coord with 1 replica accepts at least 3 times what IndiQoS with 3 replicas does",
            published="-",
            measured=f"{more} times",
            held=more.mean >= 3.0,
        ),
        Claim(
            text="ours: with lower latency and fewer messages, at equal load and with all that it accepts",
            published="-",
            measured="latency "
            + " and ".join(f"{faster[load]}" for load in LOADS)
            + " times; messages "
            + " and ".join(f"{cheaper[load]}" for load in LOADS)
            + " times",
            held=all(each.mean < 1.0 for each in (*faster.values(), *cheaper.values())),
        ),
        Claim(
            text="ours: coord comes within half again of the latency of who knows everything, at equal load",
            published="-",
            measured=f"{known} times",
            held=known.mean <= 1.5,
        ),
    ]
    return [claim for claim in found if "nan" not in claim.measured]  # a quick look leaves a scheme out


FIGURE = Figure(
    name="carvalho-4e-f",
    title="IndiQoS, flooding and ours (Carvalho et al., figure 4)",
    about="what finding a way costs in messages, and how long the way takes, by scheme",
    panels=(
        Panel(
            key="equal",
            title=f"{TYPES} types, at {EQUAL_LOAD} accepted",
            x_label=COUNTED,
            y_label="mean latency (ms)",
            x_is_logarithmic=True,
        ),
        Panel(
            key="full",
            title=f"{TYPES} types, all that it accepts",
            x_label=COUNTED,
            y_label="mean latency (ms)",
            x_is_logarithmic=True,
        ),
        Panel(
            key="accepted",
            title="subscriptions accepted, of 1,520",
            x_label="scheme, in the order of the legend",
            y_label="accepted until 100 refusals in a row",
        ),
    ),
    ours=("direct", "coord"),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
