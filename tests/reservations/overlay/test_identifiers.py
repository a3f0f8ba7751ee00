"""Do ids lie on a ring, and does everybody agree on who is closest?"""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from betimes.reservations.overlay import identifiers
from betimes.reservations.overlay.identifiers import (
    ID_BITS,
    RING,
    Contact,
    closest,
    contact_of,
    id_of,
    rendezvous_key,
    ring_distance,
    shared_bits,
)

ids = st.integers(0, RING - 1)


@given(ids, ids)
def test_distance_is_the_shorter_way_round(left, right):
    assert ring_distance(left, right) == ring_distance(right, left) <= RING // 2
    assert (left + ring_distance(left, right)) % RING == right or (
        left - ring_distance(left, right)
    ) % RING == right


@given(ids, ids)
def test_shared_bits_are_those_before_the_first_that_differs(left, right):
    bits = shared_bits(left, right)
    assert left >> (ID_BITS - bits) == right >> (ID_BITS - bits)
    assert bits == ID_BITS or (left ^ right) >> (ID_BITS - bits - 1) == 1


def test_of_two_that_are_equally_close_the_lesser_counts():
    assert closest(10, [Contact(12, "b"), Contact(8, "a")]) == Contact(8, "a")
    assert closest(10, [Contact(8, "z"), Contact(8, "y")]) == Contact(8, "y")


def test_replicas_of_a_type_lie_at_different_places():
    assert rendezvous_key("VehicleInfo", 0) == id_of("VehicleInfo") == contact_of("VehicleInfo").id
    assert len({rendezvous_key("VehicleInfo", replica) for replica in range(16)}) == 16


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(identifiers).failed == 0
