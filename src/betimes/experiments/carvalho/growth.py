"""Growth of hops, neighbours and messages with the network (004: O(log n) neighbours).

The sizes are 252, 1,000 and 4,000 nodes. In each overlay, requests are made as IndiQoS does, and released;
then as coord does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from betimes.experiments.carvalho.network import (
    COORD,
    COUNTED,
    EQUAL_LOAD,
    INDIQOS,
    TYPES,
    Requests,
    ask_one_by_one,
    publishers,
    requests,
    settled_overlay,
    utilisation,
)
from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Point,
    Row,
    above,
    curve_means,
    curve_points,
    panels_over,
    show,
)
from betimes.reservations.overlay.identifiers import RING
from betimes.simulator.chance import stream

SIZES, QUICK_SIZES = (252, 1000, 4000), (252, 1000)
ROUTES = 1000
LOG_WITHIN = 1.25  # what grows with log n grows at most this much faster
WITH_LOG_N = {
    "hops": "hops of a lookup",
    "known": "leaves and table of a node",
    "neighbours": "links of a node",
}
SCHEMES = {"indiqos_1": (INDIQOS, 1), "indiqos_3": (INDIQOS, 3), "coord": (COORD, 1)}
CURVES = {"indiqos_1": "IndiQoS, 1 replica", "indiqos_3": "IndiQoS, 3 replicas", "coord": "coord"}


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every size."""
    sizes = QUICK_SIZES if plan.quick else SIZES
    return [{"nodes": nodes, "seed": seed} for nodes in sizes for seed in plan.seeds]


def run_row(row: Row) -> dict[str, Any]:
    """Grow one overlay, trace routes in it, and make requests."""
    nodes, seed = int(row["nodes"]), int(row["seed"])
    overlay = settled_overlay(nodes, seed)
    built = overlay.sent.total()
    chance = stream(seed, "routes")
    keys, starts = chance.integers(0, RING, ROUTES), chance.integers(0, nodes, ROUTES)
    routes = [overlay.route(overlay.names[start], int(key)) for start, key in zip(starts, keys, strict=True)]
    right = sum(route[-1] == overlay.closest(int(key)).name for route, key in zip(routes, keys, strict=True))
    facts: dict[str, Any] = {
        "hops": sum(len(route) - 1 for route in routes) / ROUTES,
        "right": right / ROUTES,
        "known": sum(len(node.dht.known) for node in overlay.nodes.values()) / nodes,
        "neighbours": len(overlay.links()) / nodes,
        "join_messages": built / nodes,
    }
    homes, wanted = publishers(overlay.names, TYPES, seed), requests(overlay.names, TYPES, seed)
    for name, (scheme, replicas) in SCHEMES.items():
        asking = Requests(overlay, scheme=scheme, replicas=replicas, is_shared=False)
        asking.advertise(homes)
        asked = ask_one_by_one(wanted, asking.ask, EQUAL_LOAD)
        facts |= {f"messages_{name}": asked.messages, f"latency_ms_{name}": 1000.0 * asked.latency_s}
        asking.give_back()
        assert utilisation(overlay) == 0.0, "all that is released comes back"
    return facts


def points(results: Sequence[Row]) -> list[Point]:
    """Return hops, neighbours and messages over the number of nodes."""
    wanted = [("hops", "by prefixes", "hops"), ("neighbours", "links", "neighbours")]
    wanted += [("neighbours", "leaves and table", "known")]
    wanted += [("messages", curve, f"messages_{name}") for name, curve in CURVES.items()]
    wanted += [("latency", curve, f"latency_ms_{name}") for name, curve in CURVES.items()]
    return [
        point
        for panel, curve, y in wanted
        for point in curve_points(results, panel=panel, curve=curve, x="nodes", y=y, where={})
    ]


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the paper's claims about growth, and this project's."""
    found = []
    for y, text in WITH_LOG_N.items():
        curve = curve_means(results, "nodes", y)
        (first, least), (last, most) = curve[0], curve[-1]
        faster = (most / least) / (math.log(last) / math.log(first))
        found.append(
            Claim(
                text=f"{text} grow with log n (at most {LOG_WITHIN:g} times as fast)",
                published="O(log n)",
                measured=f"{show(curve)}; {faster:.2f} times as fast",
                held=faster <= LOG_WITHIN,
            )
        )
    right = curve_means(results, "nodes", "right")
    dear = curve_means(results, "nodes", "messages_indiqos_3")
    cheap = curve_means(results, "nodes", "messages_coord")
    slow = curve_means(results, "nodes", "latency_ms_indiqos_3")
    fast = curve_means(results, "nodes", "latency_ms_coord")
    found += [
        Claim(
            text="every lookup ends at the numerically closest node",
            published="always",
            measured=show(right),
            held=all(share == 1.0 for _, share in right),
        ),
        Claim(
            text="ours: coord needs fewer messages and less time than 3 replicas at every size",
            measured=f"messages {show(cheap)} against {show(dear)}; ms {show(fast)} against {show(slow)}",
            held=above(dear, cheap) and above(slow, fast),
        ),
    ]
    return found


FIGURE = Figure(
    name="carvalho-growth",
    title="Growth of the overlay (beyond Carvalho et al.)",
    about="how hops, neighbours and messages grow from 252 to 4,000 nodes",
    panels=panels_over(
        "nodes",
        ("hops", "a lookup", "hops"),
        ("neighbours", "neighbours", "of a node"),
        ("messages", f"signalling of requests, at {EQUAL_LOAD} accepted", COUNTED),
        ("latency", f"latency, at {EQUAL_LOAD} accepted", "ms"),
        x_is_logarithmic=True,
    ),
    ours=("coord",),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
