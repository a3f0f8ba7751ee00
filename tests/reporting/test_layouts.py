"""Do brokers stand so that near is near?"""

from __future__ import annotations

import itertools
import math

import pytest

from betimes.reporting.layouts import SPREAD_OUT_MAX, placed


def apart(places, one, other):
    return math.dist(places[one], places[other])


@pytest.mark.long
def test_a_row_of_brokers_is_a_row():
    names = list("abcde")
    places = placed(names, list(itertools.pairwise(names)))
    assert apart(places, "a", "e") == pytest.approx(4.0, abs=0.2)
    assert apart(places, "a", "b") == pytest.approx(1.0, abs=0.2)


def test_leaves_of_a_star_stand_around_its_hub():
    places = placed(list("hxyz"), [("h", each) for each in "xyz"])
    near = [apart(places, "h", each) for each in "xyz"]
    assert max(near) < min(apart(places, "x", "y"), apart(places, "y", "z"), apart(places, "x", "z"))


def test_the_same_network_looks_the_same():
    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    assert placed(list("abcd"), pairs) == placed(list("abcd"), pairs)


def test_parts_that_do_not_hang_together_have_places_too():
    places = placed(list("abcd"), [("a", "b"), ("c", "d")])
    assert all(math.isfinite(each) for place in places.values() for each in place)
    assert len(set(places.values())) == 4


@pytest.mark.parametrize("count", [0, 1, 2, SPREAD_OUT_MAX + 1])
def test_few_and_very_many_stand_on_a_circle(count):
    names = [str(each) for each in range(count)]
    places = placed(names, [(names[0], names[1])] if count > 1 else [])
    assert len(set(places.values())) == count
    assert all(math.hypot(*place) == pytest.approx(1.0) for place in places.values())
