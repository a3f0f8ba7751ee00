"""Figures 8 to 12 of 003: losses over outages (8), message size (9), rate and buffer (10, 11), policies.

Figures 8, 9 and 12 of the paper also have the highest rates that brokers sustain: `benchmarks/bench_modes.py`
has ours. Policies are compared at the same rate here, as in panel b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from betimes.experiments.farooq.mobility import (
    BUFFER_BYTES,
    NONDURABLE,
    SEMI_DURABLE,
    SHARE_AWAY,
    exact_claim,
    form_claim,
    form_points,
    lrp_loss,
    nondurable_loss,
    random_loss,
    run_of,
    run_row,
)
from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Levels,
    Point,
    PublishedValue,
    Row,
    SeedSpread,
    curve_means,
    curve_points,
    curves,
    fitting,
    grid,
    panels_over,
    ratio,
    show,
    value,
)
from betimes.model.buffer_settings import DISCONNECTION_AWARE, LRP, PWP, RANDOM, VALUE_DECAY

SHARES, QUICK_SHARES = (0.0, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15), (0.05, 0.15)
VARIATIONS, QUICK_VARIATIONS = (1.5, 2.0, 2.5), (2.5,)
VARIED_AT = 0.0742  # the share of time away at which outages vary
ALMOST_ZERO = 0.5  # per cent


def outage_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every share of time away, and every variation of outages."""
    cells = [{"share_away": share} for share in (QUICK_SHARES if plan.quick else SHARES)]
    variations = (1.0, *(QUICK_VARIATIONS if plan.quick else VARIATIONS))
    cells += [{"share_away": VARIED_AT, "outage_cv": variation} for variation in variations]
    return [
        run_of(plan, seed, strategy, **cell)
        for seed in plan.seeds
        for cell in cells
        for strategy in (NONDURABLE, SEMI_DURABLE)
    ]


def _of_shares(results: Sequence[Row]) -> list[Row]:
    return [row for row in results if row["share_away"] != VARIED_AT]


def outage_points(results: Sequence[Row]) -> list[Point]:
    """Return losses over the share of time away and over the variation, with closed forms."""
    found: list[Point] = []
    for panel, x, of in (
        ("share", "share_away", _of_shares(results)),
        ("variation", "outage_cv", fitting(results, {"share_away": VARIED_AT})),
    ):
        for strategy, form in ((NONDURABLE, nondurable_loss), (SEMI_DURABLE, lrp_loss)):
            where = {"strategy": strategy}
            found += curve_points(of, panel=panel, curve=strategy, x=x, y="loss", where=where)
            found += form_points(of, form, panel=panel, curve=f"closed form: {strategy}", x=x, where=where)
    return found


def outage_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of sections 6.1 and 6.2 about losses."""
    lost, kept = (
        curve_means(_of_shares(results), "share_away", "loss", strategy=name)
        for name in (NONDURABLE, SEMI_DURABLE)
    )
    between = [(x, a - b) for (x, a), (_, b) in zip(lost, kept, strict=True)]
    variations = sorted({float(row["outage_cv"]) for row in results})
    varied = [
        value(results, "loss", strategy=SEMI_DURABLE, share_away=VARIED_AT, outage_cv=each)
        for each in variations
    ]
    return [
        Claim(
            text=f"semi-durable loss is almost zero (below {ALMOST_ZERO} per cent) at every share",
            published="almost zero",
            measured=show(kept, digits=2),
            held=max(y for _, y in kept) < ALMOST_ZERO,
        ),
        Claim(
            text="the difference between the losses grows with the frequency of handoffs",
            published="grows",
            measured=show(between),
            held=between == sorted(between, key=lambda point: point[1]),
        ),
        Claim(
            text=f"loss grows slightly with the variation of outages (by less than {ALMOST_ZERO} per cent)",
            published="slightly",
            measured=", ".join(f"{y} at {x:g}" for x, y in zip(variations, varied, strict=True)),
            held=0.0 < varied[-1].mean - varied[0].mean < ALMOST_ZERO,
        ),
        form_claim([row for row in results if row["share_away"]], NONDURABLE, nondurable_loss, 0.05),
        exact_claim(results),
    ]


OUTAGES = Figure(
    name="farooq-8",
    title="Loss over how often and how variably subscribers are away (Farooq et al., figure 8c)",
    about="what is lost as subscribers are away more often, and for times that vary more",
    panels=(
        *panels_over(
            "share of time away (T_SD/T)", ("share", "c) over the share of time away", "lost (per cent)")
        ),
        *panels_over(
            "coefficient of variation",
            ("variation", "over the variation of outages (section 6.2)", "lost (per cent)"),
        ),
    ),
    rows=outage_rows,
    run=run_row,
    points=outage_points,
    claims=outage_claims,
)


SIZES, QUICK_SIZES = (50, 100, 200, 500), (50, 200)
BYTES = 1_500_000  # the paper's 30,000 messages of its usual size
BY_MESSAGES, BY_BYTES = SEMI_DURABLE, "lrp, 1.5 MB"
NO_EFFECT = 0.1  # per cent of all messages


def size_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every size: nothing kept, a buffer of so many messages, and one of so many bytes."""
    cells = [(NONDURABLE, BUFFER_BYTES), (SEMI_DURABLE, BUFFER_BYTES), (SEMI_DURABLE, BYTES)]
    return [
        run_of(plan, seed, strategy, size=size, buffer_bytes=buffer_bytes)
        for seed in plan.seeds
        for size in (QUICK_SIZES if plan.quick else SIZES)
        for strategy, buffer_bytes in cells
    ]


def size_points(results: Sequence[Row]) -> list[Point]:
    """Return losses over the size."""
    where: dict[str, dict[str, Any]] = {
        NONDURABLE: {"strategy": NONDURABLE},
        BY_MESSAGES: {"strategy": SEMI_DURABLE, "buffer_bytes": BUFFER_BYTES},
        BY_BYTES: {"strategy": SEMI_DURABLE, "buffer_bytes": BYTES},
    }
    found = curves("size", {"loss": "loss"}, where)(results)
    name = f"closed form: {BY_BYTES}"
    return found + form_points(results, lrp_loss, panel="loss", curve=name, x="size", where=where[BY_BYTES])


def size_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.3 about losses, and this project's about a limit in bytes."""
    by_messages, by_bytes = (
        curve_means(results, "size", "loss", strategy=SEMI_DURABLE, buffer_bytes=each)
        for each in (BUFFER_BYTES, BYTES)
    )
    losses = [y for _, y in by_messages]
    return [
        Claim(
            text=f"the size of messages has no effect on loss (less than {NO_EFFECT} per cent)",
            published="no effect",
            measured=show(by_messages),
            held=max(losses) - min(losses) < NO_EFFECT,
        ),
        Claim(
            text="ours: where the buffer is bounded in bytes, larger messages lose more",
            measured=show(by_bytes),
            held=by_bytes[-1][1] - by_bytes[0][1] > NO_EFFECT,
        ),
        exact_claim(results),
    ]


MESSAGE_SIZES = Figure(
    name="farooq-9",
    title="Loss over the size of messages (Farooq et al., figure 9c)",
    about="what is lost as messages get larger, with a buffer of messages and one of bytes",
    panels=panels_over("size of a message (bytes)", ("loss", "c) messages lost", "lost (per cent)")),
    ours=(BY_BYTES,),
    rows=size_rows,
    run=run_row,
    points=size_points,
    claims=size_claims,
)


OUTAGES_S = (12.0, 24.0)  # figure 10, figure 11
RATES = Levels((100.0, 175.0, 250.0), (100.0, 250.0))
BUFFERS = Levels((5_000, 10_000, 20_000, 30_000), (10_000, 20_000, 30_000))
AT = 250.0  # messages per second, the rate of section 7.1
SMALL = 0.1  # per cent: "a small value"


def buffer_points(results: Sequence[Row]) -> list[Point]:
    """Return losses over the rate, a curve for each buffer, with closed forms."""
    found: list[Point] = []
    for outage_s in OUTAGES_S:
        for buffer in sorted({int(row["buffer"]) for row in results}):
            panel, where = f"{outage_s:g} s", {"outage_s": outage_s, "buffer": buffer}
            name = f"{buffer} messages"
            found += curve_points(results, panel=panel, curve=name, x="rate", y="loss", where=where)
            form = f"closed form: {buffer}"
            found += form_points(results, lrp_loss, panel=panel, curve=form, x="rate", where=where)
    return found


def buffer_for(rate_per_s: float, outage_s_mean: float, loss: float) -> float:
    """Return how many messages LRP has to keep to lose no more than a share: rate · t · ln(P/ε).

    >>> round(buffer_for(250.0, 12.0, 0.001), -2)
    12900.0
    """
    return rate_per_s * outage_s_mean * math.log(SHARE_AWAY / loss)


def buffer_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 7.1 about buffers."""
    lost = {
        (outage_s, buffer): value(results, "loss", rate=AT, outage_s=outage_s, buffer=buffer)
        for outage_s in OUTAGES_S
        for buffer in sorted({int(row["buffer"]) for row in results})
    }
    falls = [
        [spread.mean for (each, _), spread in lost.items() if each == outage_s] for outage_s in OUTAGES_S
    ]
    needed = [buffer_for(AT, outage_s, SMALL / 100.0) for outage_s in OUTAGES_S]
    return [
        Claim(
            text="at a given rate, loss falls with the buffer",
            published="falls",
            measured="; ".join(", ".join(f"{y:.2g}" for y in curve) for curve in falls),
            held=all(curve == sorted(curve, reverse=True) for curve in falls),
        ),
        Claim(
            text=f"outages of 12 s: 20,000 suffice at 250 messages/s (below {SMALL} per cent)",
            published="sufficient",
            measured=f"{lost[12.0, 20_000]} %; closed form: {needed[0]:,.0f} for {SMALL} %",
            held=lost[12.0, 20_000].mean < SMALL,
        ),
        Claim(
            text="outages of 24 s: 20,000 do not, 30,000 or more are desirable",
            published="30,000 or more",
            measured=f"{lost[24.0, 20_000]} % with 20,000, {lost[24.0, 30_000]} % with 30,000; "
            f"closed form: {needed[1]:,.0f} for {SMALL} %",
            held=lost[24.0, 30_000].mean < SMALL <= lost[24.0, 20_000].mean,
        ),
        form_claim(results, SEMI_DURABLE, lrp_loss, 0.1),
        exact_claim(results),
    ]


BUFFER_SIZES = Figure(
    name="farooq-10-11",
    title="Loss over the publishing rate, by buffer (Farooq et al., figures 10 and 11)",
    about="how large a buffer must be for a publishing rate, for outages of 12 s and of 24 s",
    panels=panels_over(
        "publishing rate (messages per second)",
        *(
            (f"{outage_s:g} s", f"figure {number}: outages of {outage_s:g} s", "lost (per cent)")
            for number, outage_s in zip((10, 11), OUTAGES_S, strict=True)
        ),
    ),
    rows=grid(run_of, strategy=(SEMI_DURABLE,), outage_s=OUTAGES_S, rate=RATES, buffer=BUFFERS),
    run=run_row,
    points=buffer_points,
    claims=buffer_claims,
)


PAPER_POLICIES, OUR_POLICIES = (LRP, RANDOM, PWP), (VALUE_DECAY, DISCONNECTION_AWARE)
POLICY_OUTAGE_S = 24.0
RATE_PER_S = 258.63  # the most that the paper's PwP sustains
POLICY_BUFFERS = Levels((10_000, 20_000, 28_000, 40_000), (10_000, 20_000))
BUFFER = 20_000  # the paper's
PUBLISHED_INDEX_LOSS = 0.11  # per cent, of PwP; with LRP at 40,000 messages
PUBLISHED_CUT = 0.76  # of LRP's index loss, by PwP
SLIGHTLY, SUBSTANTIALLY = 1.5, 2.0  # times as much as LRP
OUR_CUT = 0.4


def policy_points(results: Sequence[Row]) -> list[Point]:
    """Return loss and index loss over the buffer, with closed forms."""
    where = {policy: {"strategy": policy} for policy in (*PAPER_POLICIES, *OUR_POLICIES)}
    found = curves("buffer", {"loss": "loss", "index_loss": "index_loss"}, where)(results)
    for policy, form in ((LRP, lrp_loss), (RANDOM, random_loss)):
        name = f"closed form: {policy}"
        found += form_points(results, form, panel="loss", curve=name, x="buffer", where=where[policy])
    return found


def policy_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 7.3 about policies, and this project's about its own."""
    policies = (*PAPER_POLICIES, *OUR_POLICIES)
    lost = {each: value(results, "loss", strategy=each, buffer=BUFFER) for each in policies}
    index = {each: value(results, "index_loss", strategy=each, buffer=BUFFER) for each in policies}
    of_lrp = {
        each: ratio(
            results,
            "index_loss",
            {"strategy": each, "buffer": BUFFER},
            {"strategy": LRP, "buffer": BUFFER},
        )
        for each in policies
    }
    text = ", ".join(f"{each} {lost[each]}" for each in PAPER_POLICIES)
    return [
        Claim(
            text=f"LRP has the least loss of messages, and PwP slightly more (at most {SLIGHTLY:g} times)",
            published="least, slightly higher",
            measured=text,
            held=lost[LRP].mean <= lost[PWP].mean <= SLIGHTLY * lost[LRP].mean < lost[RANDOM].mean,
        ),
        Claim(
            text=f"RAN loses substantially more (at least {SUBSTANTIALLY:g} times), messages and index",
            published="substantially",
            measured=f"{text}; index {index[RANDOM]}, LRP {index[LRP]}",
            held=lost[RANDOM].mean >= SUBSTANTIALLY * lost[LRP].mean
            and index[RANDOM].mean >= SUBSTANTIALLY * index[LRP].mean,
        ),
        Claim(
            text="loss and index loss are equal with LRP and RAN (within 5 %)",
            published="equal",
            measured=", ".join(f"{each} {lost[each]} and {index[each]}" for each in (LRP, RANDOM)),
            held=all(abs(index[each].mean / lost[each].mean - 1.0) <= 0.05 for each in (LRP, RANDOM)),
        ),
        Claim(
            text="PwP cuts LRP's index loss; without knowing absences, a policy cuts 17.7 % at most",
            published=f"{PUBLISHED_CUT:.0%}",
            measured=_cut_text(of_lrp[PWP]),
            held=of_lrp[PWP].near(1.0 - PUBLISHED_CUT),
        ),
        *_needed_claims(results),
        Claim(
            text="ours: value-decay has less index loss than LRP and PwP",
            measured=f"{1.0 - of_lrp[VALUE_DECAY].mean:.0%} less than LRP (its bound is 17.7 %)",
            held=index[VALUE_DECAY].mean < min(index[LRP].mean, index[PWP].mean),
        ),
        Claim(
            text=f"ours: disconnection-aware cuts LRP's index loss by at least {OUR_CUT:.0%}",
            measured=_cut_text(of_lrp[DISCONNECTION_AWARE]),
            held=of_lrp[DISCONNECTION_AWARE].mean <= 1.0 - OUR_CUT,
        ),
        form_claim(results, RANDOM, random_loss, 0.05),
        exact_claim(results),
    ]


def _cut_text(left: SeedSpread) -> str:
    return f"{1.0 - left.mean:.0%}" + (f" (± {left.sd:.0%})" if left.count > 1 else "")


def _needed_claims(results: Sequence[Row]) -> list[Claim]:
    """Return what LRP needs for PwP's published index loss, where the runs determine it."""
    buffers = sorted({int(row["buffer"]) for row in results})
    enough = [
        buffer
        for buffer in buffers
        if value(results, "index_loss", strategy=LRP, buffer=buffer).mean <= PUBLISHED_INDEX_LOSS
    ]
    if not enough:
        return []
    return [
        Claim(
            text=f"with LRP an index loss of {PUBLISHED_INDEX_LOSS} per cent takes twice the buffer; "
            "of the published loss, a part is the prototype's transfer, which no buffer removes",
            published="40000",
            measured=f"{enough[0]} (of {', '.join(map(str, buffers))})",
            held=enough[0] == 40_000,
        )
    ]


POLICIES = Figure(
    name="farooq-12",
    title="Overwriting policies at 258.63 messages/s, outages of 24 s (Farooq et al., figure 12)",
    about="which message should go when a buffer is full, by loss and by importance lost",
    panels=panels_over(
        "buffer (messages)",
        ("loss", "messages lost (L)", "lost (per cent)"),
        ("index_loss", "importance lost (E)", "lost (per cent)"),
    ),
    published=(PublishedValue(panel="index_loss", curve=PWP, x=float(BUFFER), y=PUBLISHED_INDEX_LOSS),),
    ours=OUR_POLICIES,
    rows=grid(
        run_of,
        rate=(RATE_PER_S,),
        outage_s=(POLICY_OUTAGE_S,),
        buffer=POLICY_BUFFERS,
        strategy=(*PAPER_POLICIES, *OUR_POLICIES),
    ),
    run=run_row,
    points=policy_points,
    claims=policy_claims,
)

FIGURES = (OUTAGES, MESSAGE_SIZES, BUFFER_SIZES, POLICIES)
