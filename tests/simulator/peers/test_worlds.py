"""Are the worlds of the overlay's experiments as they are described?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.matching.dz.spaces import boxes_dz
from betimes.simulator.peers.worlds import GRID, RECT, S2, SKEWED, SPACE, UNIFORM, PeerWorld, evenly, wanted


def test_the_publishers_of_a_grid_publish_everything_together():
    adverts = [each.advertised[0] for each in PeerWorld(GRID, UNIFORM, S2, 1).publishers()]
    assert sum(dz.volume for dz in adverts) == 1.0
    assert {dz.length for dz in adverts} == {3}


@pytest.mark.long
def test_subscriptions_of_a_grid_are_one_or_two_regular_parts():
    world = PeerWorld(GRID, UNIFORM, S2, 1)
    many = [world.subscriber() for _ in range(400)]
    assert {len(each.boxes) for each in many} == {1, 2}
    lengths = {dz.length for each in many for box in each.boxes for dz in boxes_dz(SPACE, [box])}
    assert lengths == {5, 6, 7, 8, 9}


def test_rectangles_have_sides_as_long_as_they_should():
    world = PeerWorld(RECT, UNIFORM, S2, 1)
    sides = [last - first + 1 for _ in range(200) for first, last in world.subscriber().boxes[0]]
    assert max(sides) <= 64
    assert np.median(sides) > 20


def test_bounds_are_drawn_as_often_as_they_should_be():
    world = PeerWorld(GRID, UNIFORM, S2, 3)
    drawn = np.array([world.subscriber().delay_max for _ in range(2_000)])
    for bound, share in zip(S2.bounds, S2.shares, strict=True):
        assert np.mean(drawn == bound) == pytest.approx(share, abs=0.04)
    assert evenly(5, 15).bounds == tuple(range(5, 16))


@pytest.mark.long
def test_skewed_subscriptions_crowd_at_hot_spots():
    def crowding(popularity: str) -> float:
        world = PeerWorld(RECT, popularity, S2, 5)
        centres = np.array(
            [[(low + high) / 2 for low, high in world.subscriber().boxes[0]] for _ in range(500)]
        )
        squares = (centres // 16).astype(int)
        return float(np.unique(squares, axis=0, return_counts=True)[1].max())

    assert crowding(SKEWED) > 2 * crowding(UNIFORM)


@pytest.mark.parametrize("workload", [GRID, RECT])
def test_everybody_wants_some_event_of_a_probe(workload):
    world = PeerWorld(workload, SKEWED, S2, 2)
    peers = [world.subscriber() for _ in range(200)]
    events = world.probe()
    found = wanted(peers, events)
    assert found.any(axis=1).all()
    place, event = 7, int(np.flatnonzero(found[7])[0])
    assert any(
        all(low <= cell <= high for cell, (low, high) in zip(events[event], box, strict=True))
        for box in peers[place].boxes
    )
