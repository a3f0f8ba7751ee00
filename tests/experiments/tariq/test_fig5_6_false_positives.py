"""Are the claims of figure 6 judged by the numbers?"""

from __future__ import annotations

import pytest
from tests.experiments.tariq_results import claim_with, drawn, made_up

from betimes.experiments.tariq.fig5_6 import FALSE_POSITIVES, false_claims


def test_all_claims_hold_on_numbers_as_the_paper_has_them():
    for claim in false_claims(made_up(FALSE_POSITIVES)):
        assert claim.held, claim


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"notified": 50.0}, "with 6.2 % allowed more are notified"),
        ({"notified": 50.0}, "more places help"),
        ({"notified": 50.0}, "also after 160 cycles"),
        ({"notified": 50.0}, "ours: S2, m = 6, 50 % allowed: at least"),
        ({"notified": 50.0}, "ours: S1, m = 6, 6.25 % allowed: at least"),
        ({"false": 3.0}, "ours: S1, m = 6, 6.25 % allowed: less"),
        ({"false": 3.0}, "rises by little"),
        ({"false": 3.0}, "more where bounds are tight"),
        ({"false": 3.0}, "ours: S2, m = 6, 50 % allowed: less"),
    ],
)
def test_a_claim_is_not_held_when_the_numbers_say_otherwise(changed, words):
    assert not claim_with(false_claims(made_up(FALSE_POSITIVES, lambda _: changed)), words).held


def test_both_panels_are_drawn_for_all():
    assert len(drawn(FALSE_POSITIVES)) == 16
