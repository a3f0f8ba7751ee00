"""Figures 4, 5 and 7 of 003: what subscribers receive by mode, and what brokers store for durable ones.

The paper's figures 4 and 5 have the highest rates that its brokers sustain; `benchmarks/bench_modes.py`
measures those of live brokers. Here, figure 4 has what nondurable subscribers receive at any rate below, and
figure 5 counts the work that the paper explains the rates by: what is stored for durable subscribers that are
away, and handed over when they return elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from betimes.experiments.farooq.mobility import (
    BROKERS,
    NONDURABLE,
    SEMI_DURABLE,
    SHARE_AWAY,
    SUBSCRIBERS,
    THROUGHPUT_AND_LOSS,
    exact_claim,
    form_claim,
    form_points,
    lrp_loss,
    nondurable_loss,
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
    curves,
    grid,
    panels_over,
    ratio,
    value,
)

MOBILE_RATES = Levels((50.0, 150.0, 317.0), (50.0, 317.0))
FIXED, MOBILE = 0.0, SHARE_AWAY
CURVES = {"fixed": FIXED, NONDURABLE: MOBILE}
CLOSE = 0.9  # "close to that in the fixed networks"
NONDURABLE_LOSS = 7.45  # per cent, section 5.3
NEAR = 0.3  # per cent of all messages: accepted difference to a published loss


def mobile_points(results: Sequence[Row]) -> list[Point]:
    """Return throughput and loss over the rate, and the closed form."""
    where = {curve: {"share_away": share_away} for curve, share_away in CURVES.items()}
    found = curves("rate", {"throughput": "throughput", "loss": "loss"}, where)(results)
    mobile = {"share_away": MOBILE}
    name = "closed form: P"
    return found + form_points(results, nondurable_loss, panel="loss", curve=name, x="rate", where=mobile)


def mobile_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 4 about figure 4, as far as a simulation can check them."""
    last = max(float(row["rate"]) for row in results)
    part = ratio(
        results,
        "throughput",
        {"share_away": MOBILE, "rate": last},
        {"share_away": FIXED, "rate": last},
    )
    lost = value(results, "loss", share_away=MOBILE, rate=last)
    return [
        Claim(
            text=f"mobile subscribers get close to what fixed ones do (at least {CLOSE:.0%})",
            published="close",
            measured=f"{part} times",
            held=part.mean >= CLOSE,
        ),
        Claim(
            text=f"loss of nondurable subscribers, in per cent (within {NEAR})",
            published=f"{NONDURABLE_LOSS}",
            measured=str(lost),
            held=abs(lost.mean - NONDURABLE_LOSS) <= max(NEAR, 2.0 * lost.sd),
        ),
        form_claim([row for row in results if row["share_away"]], NONDURABLE, nondurable_loss, 0.05),
    ]


NONDURABLE_FIGURE = Figure(
    name="farooq-4",
    title="Nondurable subscribers (Farooq et al., figure 4; simulated: highest rates are in bench_modes)",
    about="what nondurable subscribers get and lose, fixed and mobile",
    panels=THROUGHPUT_AND_LOSS,
    published=(PublishedValue(panel="loss", curve=NONDURABLE, x=317.0, y=NONDURABLE_LOSS),),
    rows=grid(run_of, strategy=(NONDURABLE,), rate=MOBILE_RATES, share_away=(FIXED, MOBILE)),
    run=run_row,
    points=mobile_points,
    claims=mobile_claims,
)


SHARES = Levels((0.01, 0.025, 0.05, 0.075, 0.1, 0.15), (0.025, 0.075, 0.15))
DEFAULT = 0.075  # the level nearest to the paper's default
NEAR_FORM = 0.1  # of its closed form, relatively
MOVED = 0.1  # probability of returning elsewhere after an outage


def stored_points(results: Sequence[Row]) -> list[Point]:
    """Return copies stored and handed over for each message, durable and semi-durable."""
    shares = sorted({float(row["share_away"]) for row in results})
    return [
        *curves("share_away", {"stored": "awaited", "carried": "carried"}, {"durable": {}})(results),
        *(
            Point(
                panel="stored", curve="closed form: P times fan-out", x=x, y=SUBSCRIBERS * x, sd=0.0, seeds=0
            )
            for x in shares
        ),
        *(
            Point(panel=panel, curve="semi-durable, one for each broker", x=x, y=y, sd=0.0, seeds=0)
            for panel, y in (("stored", float(BROKERS)), ("carried", 0.0))
            for x in shares
        ),
    ]


def stored_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the reasons that section 4 gives for figure 5, as claims about the counts."""
    stored = value(results, "awaited", share_away=DEFAULT)
    carried = value(results, "carried", share_away=DEFAULT)
    return [
        Claim(
            text="durable is slow for what is stored for each inactive subscriber: more than semi-durable",
            published="11 % of the rate of fixed subscribers",
            measured=f"{stored} copies a message of {SUBSCRIBERS} subscribers, semi-durable {BROKERS}",
            held=stored.mean > BROKERS,
        ),
        Claim(
            text=f"ours: copies stored are P times the fan-out (within {NEAR_FORM:.0%} or two deviations)",
            measured=f"{stored}, closed form {DEFAULT * SUBSCRIBERS:.3g}",
            held=abs(stored.mean - DEFAULT * SUBSCRIBERS)
            <= max(NEAR_FORM * DEFAULT * SUBSCRIBERS, 2.0 * stored.sd),
        ),
        Claim(
            text=f"ours: a tenth of them is handed over (between {MOVED / 2} and {2 * MOVED})",
            measured=f"{carried} copies a message",
            held=MOVED / 2 <= carried.mean / stored.mean <= 2 * MOVED,
        ),
    ]


DURABLE_FIGURE = Figure(
    name="farooq-5",
    title="Durable subscribers: the work (Farooq et al., figure 5; simulated: rates are in bench_modes)",
    about="what brokers store and hand over for durable subscribers",
    panels=panels_over(
        "share of time away",
        ("stored", "a) copies stored", "copies for each message published"),
        ("carried", "b) copies handed over to another broker", "copies for each message published"),
    ),
    rows=grid(run_of, strategy=(NONDURABLE,), share_away=SHARES),
    run=run_row,
    points=stored_points,
    claims=stored_claims,
)


RATES = Levels((100.0, 200.0, 285.29), (285.29,))
FULL = 285.29
PUBLISHED_GAIN = 1.075
PUBLISHED_LOSS = {NONDURABLE: 7.45, SEMI_DURABLE: 0.18}  # per cent, section 5.3
NEAR = 0.3  # per cent of all messages: accepted difference to a published loss
RECOVERED = 0.975  # of what nondurable subscribers lose, section 8


def full_points(results: Sequence[Row]) -> list[Point]:
    """Return throughput and loss over the rate, with closed forms."""
    where = {strategy: {"strategy": strategy} for strategy in (NONDURABLE, SEMI_DURABLE)}
    found = curves("rate", {"throughput": "throughput", "loss": "loss"}, where)(results)
    for strategy, form in ((NONDURABLE, nondurable_loss), (SEMI_DURABLE, lrp_loss)):
        name = f"closed form: {strategy}"
        found += form_points(results, form, panel="loss", curve=name, x="rate", where=where[strategy])
    return found


def full_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 5.3 about figure 7; those about durable subscribers need live brokers."""
    gain = ratio(
        results,
        "throughput",
        {"strategy": SEMI_DURABLE, "rate": FULL},
        {"strategy": NONDURABLE, "rate": FULL},
    )
    lost = {name: value(results, "loss", strategy=name, rate=FULL) for name in PUBLISHED_LOSS}
    recovered = 1.0 - lost[SEMI_DURABLE].mean / lost[NONDURABLE].mean
    return [
        Claim(
            text="throughput, semi-durable over nondurable (within 0.01)",
            published=f"{PUBLISHED_GAIN}",
            measured=str(gain),
            held=abs(gain.mean - PUBLISHED_GAIN) <= max(0.01, 2.0 * gain.sd),
        ),
        Claim(
            text=f"loss of nondurable subscribers, in per cent (within {NEAR})",
            published=f"{PUBLISHED_LOSS[NONDURABLE]}",
            measured=str(lost[NONDURABLE]),
            held=abs(lost[NONDURABLE].mean - PUBLISHED_LOSS[NONDURABLE])
            <= max(NEAR, 2.0 * lost[NONDURABLE].sd),
        ),
        Claim(
            text="loss of semi-durable subscribers, in per cent; nearly all of the published one is "
            "the prototype's transfer between its two managers, which is one step here",
            published=f"{PUBLISHED_LOSS[SEMI_DURABLE]}",
            measured=str(lost[SEMI_DURABLE]),
            held=lost[SEMI_DURABLE].near(PUBLISHED_LOSS[SEMI_DURABLE]),
        ),
        Claim(
            text=f"at least {RECOVERED:.1%} of what nondurable subscribers lose is recovered",
            published=f"{RECOVERED:.1%}",
            measured=f"{recovered:.2%}",
            held=recovered >= RECOVERED,
        ),
        form_claim(results, NONDURABLE, nondurable_loss, 0.05),
        exact_claim(results),
    ]


SEMI_DURABLE_FIGURE = Figure(
    name="farooq-7",
    title="Nondurable and semi-durable at 285.29 messages/s (Farooq et al., figure 7)",
    about="what nondurable and semi-durable subscribers get at the same rate",
    panels=THROUGHPUT_AND_LOSS,
    published=tuple(
        PublishedValue(panel="loss", curve=name, x=FULL, y=lost) for name, lost in PUBLISHED_LOSS.items()
    ),
    rows=grid(run_of, rate=RATES, strategy=(NONDURABLE, SEMI_DURABLE)),
    run=run_row,
    points=full_points,
    claims=full_claims,
)

FIGURES = (NONDURABLE_FIGURE, DURABLE_FIGURE, SEMI_DURABLE_FIGURE)
