"""Does gossip renew what peers know, and forget those who are gone?"""

from __future__ import annotations

import numpy as np

from betimes.simulator.peers.network import NO_DZ, first_views, known_serving, renew_views, view_size


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


def test_only_who_receives_it_all_and_is_in_a_hurry_could_feed_somebody():
    bits = np.array([[0b101, 0], [0b10, 0b1101], [0b1, 0], [0b1, 0]])
    lengths = np.array([[3, NO_DZ], [2, 4], [1, NO_DZ], [NO_DZ, NO_DZ]])
    delays = np.array([2.0, 3.0, 4.0, 1.0])
    view, found = np.array([3, 0, 1, 2, 0], np.int32), np.empty(5, np.int32)

    def serving(wanted: int, delay_max: float) -> list[int]:
        count = known_serving(view, bits, lengths, delays, wanted, delay_max, found)
        return [int(each) for each in found[:count]]

    assert serving(0b1011, 3.0) == [0, 1, 0]
    assert serving(0b1011, 9.0) == [0, 1, 2, 0]
    assert serving(0b110, 9.0) == [2]
    assert serving(0b1101, 2.0) == []
