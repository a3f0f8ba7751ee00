"""Does gossip renew what peers know, and forget those who are gone?"""

from __future__ import annotations

import numpy as np

from betimes.simulator.peer_sampling import first_views, renew_views, view_size


def test_a_view_is_a_twentieth_of_all_within_bounds():
    assert [view_size(count) for count in (10, 1_000, 7_000, 50_000)] == [20, 50, 350, 500]


def gossip(count: int, cycles: int, gone: int = 0):
    generator = np.random.default_rng(1)
    views = first_views(count, 20, generator)
    is_here = np.ones(count, dtype=np.bool_)
    is_here[:gone] = False
    known = np.zeros((count, 2), dtype=np.bool_)
    known[count - 1, 1] = True
    state = np.array([12345], dtype=np.uint64)
    for _ in range(cycles):
        renew_views(views, is_here, known, state)
    return views, is_here, known


def test_half_of_a_view_is_new_each_cycle_and_nobody_is_left_out():
    before, _, _ = gossip(300, 0)
    after, _, _ = gossip(300, 1)
    assert 0.3 < np.mean(before != after) < 0.7
    later, _, _ = gossip(300, 30)
    assert len(np.unique(later)) > 250


def test_who_is_gone_is_forgotten():
    views, is_here, _ = gossip(300, 12, gone=100)
    assert is_here[views[is_here]].mean() > 0.99


def test_word_of_a_publisher_reaches_everybody():
    _, _, known = gossip(500, 15)
    assert known[:, 1].all()
    assert not known[:, 0].any()
