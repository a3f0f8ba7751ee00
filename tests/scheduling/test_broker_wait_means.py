"""Do running means of waits move as they should?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.scheduling.appraisal import OPEN, WAIT_S, WAY_FACTS
from betimes.scheduling.broker import NEWEST_WEIGHT, VAIN_WEIGHT, blend_waits, note_vain_waits, widened


def ways(behind_s):
    found = np.zeros((WAY_FACTS, len(behind_s), 2))
    found[OPEN] = 1.0
    found[WAIT_S] = np.array(behind_s)[:, None]
    return found


def test_a_mean_moves_towards_the_wait_here_and_behind():
    waits_s = np.zeros(2)
    newest_s = blend_waits(waits_s, ways([3.0]), 0, np.array([1]), 2.0)
    assert newest_s == 5.0
    assert waits_s.tolist() == [0.0, pytest.approx(5.0 * NEWEST_WEIGHT)]


def test_a_wait_in_vain_moves_a_mean_up_and_never_down():
    waits_s = np.array([0.0, 100.0])
    note_vain_waits(waits_s, ways([3.0, 1.0]), np.array([0, 1]), 2.0)
    assert waits_s.tolist() == [pytest.approx(3.0 * VAIN_WEIGHT), 100.0]


def test_destinations_that_come_have_no_wait_yet():
    assert widened(np.array([1.0]), 3).tolist() == [1.0, 0.0, 0.0]
    same = np.array([1.0])
    assert widened(same, 1) is same
