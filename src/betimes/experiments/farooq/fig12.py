"""Figure 12 of 003: which message a full buffer should overwrite.

Panel a of the paper also has the highest rates that brokers sustain with each policy. Those depend on the
machine; here policies are compared at the same rate, as in panel b.
"""

from __future__ import annotations

from collections.abc import Sequence

from betimes.experiments.farooq.mobility import (
    exact_claim,
    form_claim,
    form_points,
    lrp_loss,
    random_loss,
    run_of,
    run_row,
)
from betimes.experiments.figure import (
    Claim,
    Figure,
    Levels,
    Point,
    PublishedValue,
    Row,
    SeedSpread,
    curves,
    grid,
    panels_over,
    ratio,
    value,
)
from betimes.model.buffer_settings import DISCONNECTION_AWARE, LRP, PWP, RANDOM, VALUE_DECAY

PAPERS, OURS = (LRP, RANDOM, PWP), (VALUE_DECAY, DISCONNECTION_AWARE)
OUTAGE_S = 24.0
RATE_PER_S = 258.63  # the most that the paper's PwP sustains
BUFFERS = Levels((10_000, 20_000, 28_000, 40_000), (10_000, 20_000))
BUFFER = 20_000  # the paper's
PUBLISHED_INDEX_LOSS = 0.11  # per cent, of PwP; with LRP at 40,000 messages
PUBLISHED_CUT = 0.76  # of LRP's index loss, by PwP
SLIGHTLY, SUBSTANTIALLY = 1.5, 2.0  # times as much as LRP
OUR_CUT = 0.4


def points(results: Sequence[Row]) -> list[Point]:
    """Return loss and index loss over the buffer, with closed forms."""
    where = {policy: {"strategy": policy} for policy in (*PAPERS, *OURS)}
    found = curves("buffer", {"loss": "loss", "index_loss": "index_loss"}, where)(results)
    for policy, form in ((LRP, lrp_loss), (RANDOM, random_loss)):
        name = f"closed form: {policy}"
        found += form_points(results, form, panel="loss", curve=name, x="buffer", where=where[policy])
    return found


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 7.3 about policies, and this project's about its own."""
    policies = (*PAPERS, *OURS)
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
    text = ", ".join(f"{each} {lost[each]}" for each in PAPERS)
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


FIGURE = Figure(
    name="farooq-12",
    title="Overwriting policies at 258.63 messages/s, outages of 24 s (Farooq et al., figure 12)",
    about="which message should go when a buffer is full, by loss and by importance lost",
    panels=panels_over(
        "buffer (messages)",
        ("loss", "messages lost (L)", "lost (per cent)"),
        ("index_loss", "importance lost (E)", "lost (per cent)"),
    ),
    published=(PublishedValue(panel="index_loss", curve=PWP, x=float(BUFFER), y=PUBLISHED_INDEX_LOSS),),
    ours=OURS,
    rows=grid(run_of, rate=(RATE_PER_S,), outage_s=(OUTAGE_S,), buffer=BUFFERS, strategy=(*PAPERS, *OURS)),
    run=run_row,
    points=points,
    claims=claims,
)
