"""Do coordinates learn the latencies that are measured?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from betimes.reservations.overlay.coordinates import Coordinate, estimated_s, moved
from betimes.reservations.overlay.identifiers import id_of


def learnt(places, rounds):
    """Let every node measure a few others again and again; return coordinates and true latencies."""
    names = [f"n{number}" for number in range(len(places))]
    true_s = np.linalg.norm(places[:, None] - places[None], axis=2) + 0.002
    coordinates = [Coordinate() for _ in names]
    for turn in range(rounds):
        for node in range(len(names)):
            other = (node + 1 + (turn * 7) % (len(names) - 1)) % len(names)
            coordinates[node] = moved(
                coordinates[node], coordinates[other], true_s[node, other], id_of(names[node])
            )
    return coordinates, true_s


@pytest.mark.long
def test_latencies_of_a_plane_are_learnt():
    places = np.random.default_rng(5).uniform(0.0, 0.1, (40, 2))
    coordinates, true_s = learnt(places, 400)
    errors = [
        abs(estimated_s(coordinates[a], coordinates[b]) - true_s[a, b]) / true_s[a, b]
        for a in range(40)
        for b in range(a)
    ]
    assert np.median(errors) < 0.1


def test_two_nodes_that_start_at_one_place_are_pushed_apart():
    left = moved(Coordinate(), Coordinate(), 0.05, id_of("left"))
    assert 0.0 < estimated_s(left, Coordinate()) <= 0.05
    assert left != moved(Coordinate(), Coordinate(), 0.05, id_of("right"))


def test_a_latency_of_nothing_moves_nobody_out_of_the_world():
    coordinate = Coordinate()
    for turn in range(50):
        coordinate = moved(coordinate, Coordinate(place_s=(0.01, 0.0, 0.0)), 0.0, turn)
    assert all(math.isfinite(each) for each in (*coordinate.place_s, coordinate.height_s, coordinate.error))
