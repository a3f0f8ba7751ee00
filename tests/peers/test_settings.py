"""Are the two protocols told apart by what they do?"""

from __future__ import annotations

import math

from betimes.peers.settings import our_settings, paper_settings


def test_ours_does_what_the_papers_does_not():
    paper, ours = paper_settings(6, 0.1, 4), our_settings(6, 0.1, 4)
    assert (paper.keeps_late, paper.adopts, paper.starve_after, paper.yield_after) == (
        False,
        False,
        math.inf,
        math.inf,
    )
    assert ours.keeps_late
    assert ours.adopts
    assert (paper.tells_needs, ours.tells_needs) == (False, True)
    assert ours.starve_after < ours.yield_after < math.inf
    assert (paper.out_degree_max, ours.false_share_max, ours.expressions_max) == (6, 0.1, 4)
