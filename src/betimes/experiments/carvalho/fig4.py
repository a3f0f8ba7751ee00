"""Figure 4 of 004: utilisation (a, b), latency and messages (c, d), and schemes of finding a route (e, f).

In panels b to d, subscriptions are not merged, as in the paper. Latencies (c) are compared at equal load: at
saturation, more replicas have also accepted more, over longer routes. The schemes are IndiQoS with 1 and 3
replicas, flooding of network state and of requests, and both of ours. Every message of an accepted request
counts, answers and dead ends included; for flooding of state also the updates that it causes.

Beyond the paper: the growth of hops, neighbours and messages with the network (004: O(log n) neighbours). The
sizes are 252, 1,000 and 4,000 nodes. In each overlay, requests are made as IndiQoS does, and released; then
as coord does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from betimes.experiments.carvalho.network import (
    COORD,
    COUNTED,
    DIRECT,
    EQUAL_LOAD,
    FNS,
    FNS_EVERY,
    FR,
    INDIQOS,
    TYPES,
    Requests,
    ask_one_by_one,
    publishers,
    requests,
    run_of,
    run_row,
    settled_overlay,
    utilisation,
)
from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Levels,
    Point,
    Row,
    SeedSpread,
    above,
    curve_claim,
    curve_means,
    curve_points,
    curves,
    falls,
    fitting,
    grid,
    panels_over,
    ratio,
    rises,
    show,
    spread_point,
    value,
)
from betimes.reservations.overlay.identifiers import RING
from betimes.simulator.chance import stream

TYPE_NUMBERS = Levels((1, 5, 20, 50, 100, 200), (1, 20, 200))
OWN_FLOWS, SHARED = "each its own flow", "flows merged into trees"


def type_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.1 about types."""
    own = curve_means(results, "types", "utilisation", shared=False)
    merged = curve_means(results, "types", "accepted", shared=True)
    apart = curve_means(results, "types", "accepted", shared=False)
    return [
        curve_claim("utilisation (per cent) grows with the number of event types", "grows", own, rises),
        Claim(
            text="with a single type most of the network remains unused (below 2 per cent)",
            published="under-utilised",
            measured=show(own[:1]),
            held=own[0][1] < 2.0,
        ),
        Claim(
            text="ours: merged into trees, more subscriptions are accepted at every number of types",
            measured=f"{show(merged)}; without: {show(apart)}",
            held=above(merged, apart),
        ),
    ]


OVER_TYPES = Figure(
    name="carvalho-4a",
    title="Utilisation over event types (Carvalho et al., figure 4)",
    about="how much of the network can be reserved as there are more event types",
    panels=panels_over(
        "event types",
        ("utilisation", "bandwidth that is reserved", "of all links (per cent)"),
        ("accepted", "subscriptions accepted", "accepted until 100 refusals in a row"),
    ),
    rows=grid(run_of, types=TYPE_NUMBERS, shared=(False, True)),
    run=run_row,
    points=curves(
        "types",
        {"utilisation": "utilisation", "accepted": "accepted"},
        {OWN_FLOWS: {"shared": False}, SHARED: {"shared": True}},
    ),
    claims=type_claims,
)


FEW_REPLICAS = Levels((1, 2, 4, 8, 16), (1, 4, 16))
NUMBERS = (1, TYPES)


def curve_of(types: int) -> str:
    """Return the label of a number of types."""
    return "1 event type" if types == 1 else f"{types} event types"


def utilisation_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.2 about utilisation."""
    one = curve_means(results, "replicas", "utilisation", types=1)
    many = curve_means(results, "replicas", "utilisation", types=TYPES)
    accepted = curve_means(results, "replicas", "accepted", types=1)
    return [
        curve_claim("a single type: utilisation (per cent) grows with the replicas", "grows", one, rises),
        curve_claim(
            "a single type: more subscriptions are satisfied with more replicas", "more", accepted, rises
        ),
        Claim(
            text="with several replicas, a single type makes better use of resources than many types",
            published="better",
            measured=f"1 type: {show(one[1:])}; {TYPES} types: {show(many[1:])}",
            held=above(one[1:], many[1:]),
        ),
    ]


UTILISATION = Figure(
    name="carvalho-4b",
    title="Utilisation over replicas (Carvalho et al., figure 4)",
    about="how much of the network can be reserved as rendezvous have more replicas",
    panels=panels_over(
        "replicas of the rendezvous",
        ("utilisation", "bandwidth that is reserved", "of all links (per cent)"),
        ("accepted", "subscriptions accepted", "accepted until 100 refusals in a row"),
    ),
    rows=grid(run_of, replicas=FEW_REPLICAS, types=NUMBERS),
    run=run_row,
    points=curves(
        "replicas",
        {"utilisation": "utilisation", "accepted": "accepted"},
        {curve_of(types): {"types": types} for types in NUMBERS},
    ),
    claims=utilisation_claims,
)


REPLICAS = Levels((1, 2, 3, 4, 6, 8, 12, 16), (1, 4, 16))
MOST, FEW = 16, 4
GAIN_AT_FEW = 0.6  # share of the gain of 16 replicas that 4 have
LINEAR_WITHIN = 0.15  # of the straight line from the first to the last
CURVE = f"IndiQoS, {TYPES} types"


def cost_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.2 about latency and signalling."""
    latency = curve_means(results, "replicas", "latency_ms")
    messages = curve_means(results, "replicas", "messages")
    at = dict(latency)
    gain = (at[1] - at[FEW]) / (at[1] - at[MOST])
    (first_x, first_y), (last_x, last_y) = messages[0], messages[-1]
    slope = (last_y - first_y) / (last_x - first_x)
    off = max(abs(y / (first_y + slope * (x - first_x)) - 1.0) for x, y in messages)
    return [
        curve_claim("latency (ms) falls with the replicas", "falls", latency, falls),
        Claim(
            text=f"most of what {MOST} replicas gain is there with {FEW} (at least {GAIN_AT_FEW:.0%})",
            published="significant gains with four, no significant improvement beyond",
            measured=f"{gain:.0%}",
            held=gain >= GAIN_AT_FEW,
        ),
        Claim(
            text="messages per accepted request grow with the replicas, in a straight line "
            f"(within {LINEAR_WITHIN:.0%})",
            published="increases",
            measured=f"{show(messages)}; off by {off:.0%}",
            held=rises(messages) and off <= LINEAR_WITHIN,
        ),
    ]


COSTS = Figure(
    name="carvalho-4c-d",
    title="Latency and signalling over replicas (Carvalho et al., figure 4)",
    about="what more replicas of the rendezvous gain in latency, and cost in messages",
    panels=panels_over(
        "replicas of the rendezvous",
        ("latency", f"latency, at {EQUAL_LOAD} accepted", "mean latency (ms)"),
        ("messages", "signalling: all but advertisements and refreshes", COUNTED),
    ),
    rows=grid(run_of, replicas=REPLICAS, accepted_max=(EQUAL_LOAD,)),
    run=run_row,
    points=curves("replicas", {"latency": "latency_ms", "messages": "messages"}, {CURVE: {}}),
    claims=cost_claims,
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


def scheme_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every scheme, at equal load and until the network is full."""
    return [
        run_of(plan, seed, accepted_max=load, **scheme)
        for seed in plan.seeds
        for load in LOADS
        for scheme in SCHEMES.values()
        if not plan.quick or scheme["scheme"] != FNS_EVERY
    ]


def scheme_points(results: Sequence[Row]) -> list[Point]:
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


def scheme_claims(results: Sequence[Row]) -> list[Claim]:
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
    """Return this project's scheme_claims."""
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


COMPARISON = Figure(
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
    rows=scheme_rows,
    run=run_row,
    points=scheme_points,
    claims=scheme_claims,
)


SIZES, QUICK_SIZES = (252, 1000, 4000), (252, 1000)
ROUTES = 1000
LOG_WITHIN = 1.25  # what grows with log n grows at most this much faster
WITH_LOG_N = {
    "hops": "hops of a lookup",
    "known": "leaves and table of a node",
    "neighbours": "links of a node",
}
GROWN_SCHEMES = {"indiqos_1": (INDIQOS, 1), "indiqos_3": (INDIQOS, 3), "coord": (COORD, 1)}
CURVES = {"indiqos_1": "IndiQoS, 1 replica", "indiqos_3": "IndiQoS, 3 replicas", "coord": "coord"}


def growth_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every size."""
    sizes = QUICK_SIZES if plan.quick else SIZES
    return [{"nodes": nodes, "seed": seed} for nodes in sizes for seed in plan.seeds]


def run_growth(row: Row) -> dict[str, Any]:
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
    for name, (scheme, replicas) in GROWN_SCHEMES.items():
        asking = Requests(overlay, scheme=scheme, replicas=replicas, is_shared=False)
        asking.advertise(homes)
        asked = ask_one_by_one(wanted, asking.ask, EQUAL_LOAD)
        facts |= {f"messages_{name}": asked.messages, f"latency_ms_{name}": 1000.0 * asked.latency_s}
        asking.give_back()
        assert utilisation(overlay) == 0.0, "all that is released comes back"
    return facts


def growth_points(results: Sequence[Row]) -> list[Point]:
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


def growth_claims(results: Sequence[Row]) -> list[Claim]:
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


GROWTH = Figure(
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
    rows=growth_rows,
    run=run_growth,
    points=growth_points,
    claims=growth_claims,
)

FIGURES = (OVER_TYPES, UTILISATION, COSTS, COMPARISON, GROWTH)
