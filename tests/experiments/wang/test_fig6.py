"""Are the claims of figure 6 judged by the numbers?"""

from __future__ import annotations

from typing import Any

from betimes.experiments.figure import FigurePlan
from betimes.experiments.wang.fig6 import FIGURE, claims

SHARE = {"eb": 0.401, "pc": 0.4, "fifo": 0.225, "rl": 0.116, "look-ahead": 0.43, "late-binding": 0.46}
MESSAGES = {"eb": 117.0, "pc": 118.0, "fifo": 100.0, "rl": 73.125, "look-ahead": 105.0, "late-binding": 120.0}


def made_up(**change: float) -> list[dict[str, Any]]:
    """Return results of the paper's shape, with the share of some strategies at rate 15 changed."""
    level = SHARE | {name.replace("_", "-"): value for name, value in change.items()}
    return [
        {
            **each,
            "delivery_rate": level[each["strategy"]] + (15.0 - each["rate"]) / 100,
            "messages": MESSAGES[each["strategy"]] * each["rate"],
        }
        for each in FIGURE.rows(FigurePlan(seeds=(1, 2)))
    ]


def test_all_claims_hold_on_numbers_as_the_paper_has_them() -> None:
    for claim in claims(made_up()):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    held = {claim.text: claim.held for claim in claims(made_up(pc=0.2, rl=0.3, late_binding=0.42))}
    assert not held["EB and PC deliver more than FIFO and RL (rate 15)"]
    assert not held["delivery rate of RL (rate 15)"]
    assert held["delivery rate of EB (rate 15)"]
    assert not next(value for text, value in held.items() if text.startswith("ours"))


def test_both_panels_have_every_curve_at_every_rate() -> None:
    found = FIGURE.points(made_up())
    assert {point.panel for point in found} == {panel.key for panel in FIGURE.panels}
    rates = {each["rate"] for each in FIGURE.rows(FigurePlan(seeds=(1,)))}
    assert len(found) == 2 * len(SHARE) * len(rates)


def test_the_published_delivery_rates_are_marked_at_rate_15() -> None:
    assert {(each.curve, each.x, each.y) for each in FIGURE.published} == {
        ("eb", 15.0, 0.401),
        ("fifo", 15.0, 0.225),
        ("rl", 15.0, 0.116),
    }
