"""Are the claims of figure 7 judged by the numbers?"""

from __future__ import annotations

import pytest

from betimes.experiments.figure import FigurePlan
from betimes.experiments.pongthawornkamol.fig4_to_7 import (
    ADMISSION,
    policy_claims,
    policy_points,
    policy_rows,
    run_policy,
)

SATISFIED = {
    "none": 0.2,
    "random": 0.6,
    "hi-req-first": 0.6,
    "low-req-first": 0.65,
    "overlap-first": 0.6,
    "optimum": 0.7,
    "reverse-greedy": 0.69,
    "optimum by mean waits": 0.6,
}


def made_up(violated=0, **change):
    level = SATISFIED | {name.replace("_", "-"): value for name, value in change.items()}
    return [
        row
        | {
            "admitted": 7,
            "predicted": level[row["policy"]],
            "satisfied": level[row["policy"]],
            "violated": violated,
            "violated_share": violated / 7,
        }
        for row in policy_rows(FigurePlan(seeds=(1, 2)))
    ]


def test_all_claims_hold_on_numbers_as_the_paper_has_them():
    for claim in policy_claims(made_up()):
        assert claim.held, claim


def test_no_claim_is_held_when_the_numbers_say_otherwise():
    for claim in policy_claims(made_up(violated=2, none=0.9, random=0.68, reverse_greedy=0.6)):
        assert not claim.held, claim


def test_every_panel_has_every_policy_at_every_rate():
    found = policy_points(made_up())
    assert {point.panel for point in found} == {panel.key for panel in ADMISSION.panels}
    rates = {row["rate"] for row in policy_rows(FigurePlan(seeds=(1,)))}
    assert len(found) == 3 * len(SATISFIED) * len(rates)


@pytest.mark.figure
def test_refusing_some_satisfies_more_than_refusing_none():
    found = {
        policy: run_policy({"policy": policy, "rate": 2.5, "seed": 2, "duration_s": 500.0})
        for policy in ("none", "reverse-greedy")
    }
    assert found["none"]["admitted"] == 10
    assert found["reverse-greedy"]["satisfied"] > found["none"]["satisfied"]
