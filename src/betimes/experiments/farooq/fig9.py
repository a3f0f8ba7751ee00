"""Figure 9 of 003: losses over the size of messages.

Panels a, b and d of the paper have the highest rates that brokers sustain; `benchmarks/bench_modes.py` has
ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.farooq.mobility import (
    BUFFER_BYTES,
    NONDURABLE,
    SEMI_DURABLE,
    exact_claim,
    form_points,
    lrp_loss,
    run_of,
    run_row,
)
from betimes.experiments.figure import Claim, Figure, FigurePlan, Point, Row, curves, panels_over, value

SIZES, QUICK_SIZES = (50, 100, 200, 500), (50, 200)
BYTES = 1_500_000  # the paper's 30,000 messages of its usual size
BY_MESSAGES, BY_BYTES = SEMI_DURABLE, "lrp, 1.5 MB"
NO_EFFECT = 0.1  # per cent of all messages


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every size: nothing kept, a buffer of so many messages, and one of so many bytes."""
    cells = [(NONDURABLE, BUFFER_BYTES), (SEMI_DURABLE, BUFFER_BYTES), (SEMI_DURABLE, BYTES)]
    return [
        run_of(plan, seed, strategy, size=size, buffer_bytes=buffer_bytes)
        for seed in plan.seeds
        for size in (QUICK_SIZES if plan.quick else SIZES)
        for strategy, buffer_bytes in cells
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return losses over the size."""
    where: dict[str, dict[str, Any]] = {
        NONDURABLE: {"strategy": NONDURABLE},
        BY_MESSAGES: {"strategy": SEMI_DURABLE, "buffer_bytes": BUFFER_BYTES},
        BY_BYTES: {"strategy": SEMI_DURABLE, "buffer_bytes": BYTES},
    }
    found = curves("size", {"loss": "loss"}, where)(results)
    name = f"closed form: {BY_BYTES}"
    return found + form_points(results, lrp_loss, panel="loss", curve=name, x="size", where=where[BY_BYTES])


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.3 about losses, and this project's about a limit in bytes."""
    sizes = sorted({int(row["size"]) for row in results})
    lost = {
        each: [
            value(results, "loss", strategy=SEMI_DURABLE, buffer_bytes=each, size=size).mean for size in sizes
        ]
        for each in (BUFFER_BYTES, BYTES)
    }
    texts = {
        each: ", ".join(f"{y:.3g} at {x}" for x, y in zip(sizes, losses, strict=True))
        for each, losses in lost.items()
    }
    return [
        Claim(
            text=f"the size of messages has no effect on loss (less than {NO_EFFECT} per cent)",
            published="no effect",
            measured=texts[BUFFER_BYTES],
            held=max(lost[BUFFER_BYTES]) - min(lost[BUFFER_BYTES]) < NO_EFFECT,
        ),
        Claim(
            text="ours: where the buffer is bounded in bytes, larger messages lose more",
            published="-",
            measured=texts[BYTES],
            held=lost[BYTES][-1] - lost[BYTES][0] > NO_EFFECT,
        ),
        exact_claim(results),
    ]


FIGURE = Figure(
    name="farooq-9",
    title="Loss over the size of messages (Farooq et al., figure 9c)",
    about="what is lost as messages get larger, with a buffer of messages and one of bytes",
    panels=panels_over("size of a message (bytes)", ("loss", "c) messages lost", "lost (per cent)")),
    ours=(BY_BYTES,),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
