"""Figure 4 of 004, a to d: utilisation over event types and replicas, latency and messages over replicas.

In panels b to d, subscriptions are not merged, as in the paper. Latencies (c) are compared at equal load: at
saturation, more replicas have also accepted more, over longer routes.
"""

from __future__ import annotations

from collections.abc import Sequence

from betimes.experiments.carvalho.network import COUNTED, EQUAL_LOAD, TYPES, run_of, run_row
from betimes.experiments.figure import (
    Claim,
    Figure,
    Levels,
    Row,
    curve_means,
    curves,
    grid,
    panels_over,
    rises,
    show,
)

TYPE_NUMBERS = Levels((1, 5, 20, 50, 100, 200), (1, 20, 200))
OWN_FLOWS, SHARED = "each its own flow", "flows merged into trees"


def type_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.1 about types."""
    own = curve_means(results, "types", "utilisation", shared=False)
    merged = curve_means(results, "types", "accepted", shared=True)
    apart = curve_means(results, "types", "accepted", shared=False)
    return [
        Claim(
            text="utilisation (per cent) grows with the number of event types",
            published="grows",
            measured=show(own),
            held=rises(own),
        ),
        Claim(
            text="with a single type most of the network remains unused (below 2 per cent)",
            published="under-utilised",
            measured=show(own[:1]),
            held=own[0][1] < 2.0,
        ),
        Claim(
            text="ours: merged into trees, more subscriptions are accepted at every number of types",
            measured=f"{show(merged)}; without: {show(apart)}",
            held=all(left[1] > right[1] for left, right in zip(merged, apart, strict=True)),
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
        Claim(
            text="a single type: utilisation (per cent) grows with the replicas",
            published="grows",
            measured=show(one),
            held=rises(one),
        ),
        Claim(
            text="a single type: more subscriptions are satisfied with more replicas",
            published="more",
            measured=show(accepted),
            held=rises(accepted),
        ),
        Claim(
            text="with several replicas, a single type makes better use of resources than many types",
            published="better",
            measured=f"1 type: {show(one[1:])}; {TYPES} types: {show(many[1:])}",
            held=all(left[1] > right[1] for left, right in zip(one[1:], many[1:], strict=True)),
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
        Claim(
            text="latency (ms) falls with the replicas",
            published="falls",
            measured=show(latency),
            held=rises([(x, -y) for x, y in latency]),
        ),
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

FIGURES = (OVER_TYPES, UTILISATION, COSTS)
