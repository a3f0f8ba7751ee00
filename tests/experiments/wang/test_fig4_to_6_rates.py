"""Are the claims of figures 5 and 6 judged by the numbers?"""

from __future__ import annotations

from typing import Any

import pytest

from betimes.experiments.figure import FigurePlan, curve_means
from betimes.experiments.wang.fig4_to_6 import (
    EARNING,
    OURS,
    PAPERS,
    SHARE,
    at_rate,
    beats_claim,
    earning_claims,
    peak,
    ratio,
    ratio_claim,
    share_claims,
)

EARNED = {"eb": 100.0, "pc": 90.0, "fifo": 20.0, "rl": 10.0, "look-ahead": 105.0, "late-binding": 115.0}
EARNING_MESSAGES = {
    "eb": 123.0,
    "pc": 123.0,
    "fifo": 100.0,
    "rl": 75.0,
    "look-ahead": 120.0,
    "late-binding": 130.0,
}


def earning(strategy: str, rate: float, at_15: float) -> float:
    """Return what rises to the value at rate 15, or for FIFO and RL rises beyond and falls to it."""
    return at_15 * (min(rate, 21.0 - rate) / 6.0 if strategy in ("fifo", "rl") else rate / 15.0)


def made_up_earning(**change: float) -> list[dict[str, Any]]:
    """Return results of the paper's shape, with the earning of some strategies at rate 15 changed."""
    level = EARNED | {name.replace("_", "-"): value for name, value in change.items()}
    return [
        {
            **each,
            "earning": earning(each["strategy"], each["rate"], level[each["strategy"]]),
            "messages": EARNING_MESSAGES[each["strategy"]] * each["rate"],
        }
        for each in EARNING.rows(FigurePlan(seeds=(1, 2)))
    ]


def test_all_claims_hold_on_numbers_as_the_paper_has_them_in_figure_5() -> None:
    for claim in earning_claims(made_up_earning()):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figure_5() -> None:
    held = {
        claim.text: claim.held
        for claim in earning_claims(made_up_earning(pc=120.0, rl=30.0, late_binding=104.0))
    }
    assert not held["EB earns more than PC at every rate"]
    assert not held["RL earns least (rate 15)"]
    assert not held["earning, EB over RL (rate 15)"]
    assert not next(value for text, value in held.items() if text.startswith("ours"))


def test_both_panels_have_every_curve_at_every_rate_in_figure_5() -> None:
    found = EARNING.points(made_up_earning())
    assert {point.panel for point in found} == {panel.key for panel in EARNING.panels}
    rates = {each["rate"] for each in EARNING.rows(FigurePlan(seeds=(1,)))}
    assert len(found) == 2 * len(EARNED) * len(rates)


SHARES = {"eb": 0.401, "pc": 0.4, "fifo": 0.225, "rl": 0.116, "look-ahead": 0.43, "late-binding": 0.46}
SHARE_MESSAGES = {
    "eb": 117.0,
    "pc": 118.0,
    "fifo": 100.0,
    "rl": 73.125,
    "look-ahead": 105.0,
    "late-binding": 120.0,
}


def made_up_shares(**change: float) -> list[dict[str, Any]]:
    """Return results of the paper's shape, with the share of some strategies at rate 15 changed."""
    level = SHARES | {name.replace("_", "-"): value for name, value in change.items()}
    return [
        {
            **each,
            "delivery_rate": level[each["strategy"]] + (15.0 - each["rate"]) / 100,
            "messages": SHARE_MESSAGES[each["strategy"]] * each["rate"],
        }
        for each in SHARE.rows(FigurePlan(seeds=(1, 2)))
    ]


def test_all_claims_hold_on_numbers_as_the_paper_has_them_in_figure_6() -> None:
    for claim in share_claims(made_up_shares()):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figure_6() -> None:
    held = {
        claim.text: claim.held for claim in share_claims(made_up_shares(pc=0.2, rl=0.3, late_binding=0.42))
    }
    assert not held["EB and PC deliver more than FIFO and RL (rate 15)"]
    assert not held["delivery rate of RL (rate 15)"]
    assert held["delivery rate of EB (rate 15)"]
    assert not next(value for text, value in held.items() if text.startswith("ours"))


def test_both_panels_have_every_curve_at_every_rate_in_figure_6() -> None:
    found = SHARE.points(made_up_shares())
    assert {point.panel for point in found} == {panel.key for panel in SHARE.panels}
    rates = {each["rate"] for each in SHARE.rows(FigurePlan(seeds=(1,)))}
    assert len(found) == 2 * len(SHARES) * len(rates)


def test_the_published_delivery_rates_are_marked_at_rate_15_in_figure_6() -> None:
    assert {(each.curve, each.x, each.y) for each in SHARE.published} == {
        ("eb", 15.0, 0.401),
        ("fifo", 15.0, 0.225),
        ("rl", 15.0, 0.116),
    }


def results(messages: dict[str, float]) -> list[dict[str, object]]:
    """Return made-up results: two seeds, the second with twice of everything."""
    return [
        {"strategy": name, "rate": 15.0, "seed": seed, "messages": value * seed, "earning": value * seed}
        for name, value in messages.items()
        for seed in (1, 2)
    ]


def test_rate_rows_hold_every_strategy_at_every_rate_for_every_seed() -> None:
    rows = EARNING.rows(FigurePlan(seeds=(1, 2)))
    assert {each["strategy"] for each in rows} == {*PAPERS, *OURS}
    assert len(rows) == len({(each["strategy"], each["rate"], each["seed"]) for each in rows})


def test_a_ratio_is_taken_seed_by_seed() -> None:
    made_up = results({"eb": 12.0, "fifo": 10.0})
    assert ratio(made_up, "eb", "fifo", "messages").mean == pytest.approx(1.2)
    assert ratio(made_up, "eb", "fifo", "messages").sd == pytest.approx(0.0)


def test_a_ratio_claim_holds_when_the_published_number_is_near() -> None:
    made_up = results({"eb": 12.0, "fifo": 10.0})
    assert ratio_claim(made_up, "EB over FIFO", "eb", "fifo", "messages", 1.2).held
    assert not ratio_claim(made_up, "EB over FIFO", "eb", "fifo", "messages", 1.3).held


def test_values_at_a_rate_and_means_over_seeds() -> None:
    made_up = results({"eb": 10.0})
    assert at_rate(made_up, "eb", "earning") == {1: 10.0, 2: 20.0}
    assert curve_means(made_up, "rate", "earning", strategy="eb") == [(15.0, 15.0)]


def test_the_peak_is_where_a_curve_is_highest() -> None:
    assert peak([(1, 1.0), (6, 3.0), (15, 2.0)]) == 6


@pytest.mark.parametrize(
    ("ours", "traffic", "held"), [(11.5, 11.0, True), (10.5, 11.0, False), (11.5, 12.0, False)]
)
def test_our_claim_needs_a_tenth_more_at_no_more_than_the_traffic_allowed(
    ours: float, traffic: float, held: bool
) -> None:
    made_up = results({"eb": 10.0, "late-binding": ours})
    for each in made_up:
        if each["strategy"] == "late-binding":
            each["messages"] = traffic * float(str(each["seed"]))
    assert beats_claim(made_up, "earning", "earning").held is held
