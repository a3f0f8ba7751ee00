"""Are the claims of figure 5 judged by the numbers?"""

from __future__ import annotations

from typing import Any

from betimes.experiments.figure import FigurePlan
from betimes.experiments.wang.fig5 import FIGURE, claims

EARNING = {"eb": 100.0, "pc": 90.0, "fifo": 20.0, "rl": 10.0, "look-ahead": 105.0, "late-binding": 115.0}
MESSAGES = {"eb": 123.0, "pc": 123.0, "fifo": 100.0, "rl": 75.0, "look-ahead": 120.0, "late-binding": 130.0}


def earning(strategy: str, rate: float, at_15: float) -> float:
    """Return what rises to the value at rate 15, or for FIFO and RL rises beyond and falls to it."""
    return at_15 * (min(rate, 21.0 - rate) / 6.0 if strategy in ("fifo", "rl") else rate / 15.0)


def made_up(**change: float) -> list[dict[str, Any]]:
    """Return results of the paper's shape, with the earning of some strategies at rate 15 changed."""
    level = EARNING | {name.replace("_", "-"): value for name, value in change.items()}
    return [
        {
            **each,
            "earning": earning(each["strategy"], each["rate"], level[each["strategy"]]),
            "messages": MESSAGES[each["strategy"]] * each["rate"],
        }
        for each in FIGURE.rows(FigurePlan(seeds=(1, 2)))
    ]


def test_all_claims_hold_on_numbers_as_the_paper_has_them() -> None:
    for claim in claims(made_up()):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    held = {claim.text: claim.held for claim in claims(made_up(pc=120.0, rl=30.0, late_binding=104.0))}
    assert not held["EB earns more than PC at every rate"]
    assert not held["RL earns least (rate 15)"]
    assert not held["earning, EB over RL (rate 15)"]
    assert not next(value for text, value in held.items() if text.startswith("ours"))


def test_both_panels_have_every_curve_at_every_rate() -> None:
    found = FIGURE.points(made_up())
    assert {point.panel for point in found} == {panel.key for panel in FIGURE.panels}
    rates = {each["rate"] for each in FIGURE.rows(FigurePlan(seeds=(1,)))}
    assert len(found) == 2 * len(EARNING) * len(rates)
