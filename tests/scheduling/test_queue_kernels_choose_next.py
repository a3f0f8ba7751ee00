"""Is one call the same as three? (`test_output_queue` compares them with every strategy.)"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.scheduling.appraisal import OPEN, S_PER_KB_MEAN, SLOT_FACTS, WAY_FACTS
from betimes.scheduling.queue_kernels import NOT_TAKEN, NOTHING, NUMBER_OF, choice_book, put_rows, take_next
from betimes.scheduling.strategies import EB, STRATEGIES, Strategy

NOW_S = 1.0


class Pool:
    """Messages of one row each, all for one destination behind one link."""

    def __init__(self, *bounds_s: float) -> None:
        self.slots, self.rows = np.zeros((8, SLOT_FACTS)), np.zeros((8, 5))
        self.results, self.taken = np.zeros((5, 8)), np.zeros((2, 8), dtype=np.int64)
        self.ways, self.free_at_s = np.zeros((WAY_FACTS, 1, 1)), np.zeros(1)
        self.ways[OPEN], self.ways[S_PER_KB_MEAN] = 1.0, 1.0
        self.count = len(bounds_s)
        for slot, bound_s in enumerate(bounds_s):
            row = np.array([[0.0, bound_s, 1.0 + slot, 2.0, 0.0]])
            put_rows(row, np.zeros(1, dtype=np.int64), self.slots, slot, slot, 0.0, 1.0, 0.5, self.rows)

    def take_next(self, strategy: Strategy) -> tuple[int, int, int, int, int, float, float]:
        arrays = (self.slots, self.rows, self.results, self.taken)
        book, number = choice_book(arrays, self.ways, self.free_at_s), NUMBER_OF[strategy.appraise]
        return take_next(book, number, NOW_S, 0, self.count, 0.0, 1.0, 0.1, *strategy.score)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_the_best_is_taken_with_its_destinations(strategy):
    pool = Pool(9.0, 0.5)  # the second is too late
    assert pool.take_next(strategy) == (1, 1, 0, 1, 0, 1.0, 0.5)
    assert pool.taken[:, 0].tolist() == [0, 2]
    assert pool.take_next(strategy)[1:3] == (0, NOTHING)


def test_of_several_without_a_bound_none_is_taken_yet():
    pool = Pool(float("inf"), float("inf"))
    assert pool.take_next(EB)[:4] == (0, 2, 1, NOT_TAKEN)
    assert Pool(float("inf")).take_next(EB)[:4] == (0, 1, 0, 1)


def test_ways_that_would_be_copied_are_refused():
    ways = np.zeros((WAY_FACTS, 2, 4))[:, :, ::2]
    with pytest.raises(AssertionError, match="copy"):
        choice_book((), ways, np.zeros(2))
