"""Does a picture of a network show every broker, how busy each link was, and distances like hops?"""

from __future__ import annotations

import itertools
import math

import pytest

from betimes.reporting.figure_plots import OURS
from betimes.reporting.report_plots import NAMES_SHOWN_MAX, SPREAD_OUT_MAX, draw_network, placed


@pytest.mark.long
def test_brokers_subscribers_and_loads_are_written_down():
    text = draw_network(
        ["a", "b"], {("a", "b"): 10.0, ("b", "a"): 1.0}, {("a", "b"): 0.85, ("b", "a"): 0.02}, {"b": 3}
    )
    for shown in ("a", "b (3)", "85%", "2%"):
        assert f">{shown}</text>" in text


@pytest.mark.long
def test_a_busy_link_has_a_colour_of_its_own():
    idle = draw_network(["a", "b"], {("a", "b"): 1.0}, {("a", "b"): 0.1}, {})
    busy = draw_network(["a", "b"], {("a", "b"): 1.0}, {("a", "b"): 0.9}, {})
    assert OURS[0].lower() in busy
    assert OURS[0].lower() not in idle


@pytest.mark.long
def test_a_broker_without_links_and_links_that_carried_nothing_are_drawn():
    assert ">alone</text>" in draw_network(["alone"], {}, {}, {})
    assert ">a</text>" in draw_network(["a", "b"], {("a", "b"): 0.0}, {}, {})


@pytest.mark.long
def test_names_are_left_out_where_they_would_cover_each_other():
    names = [f"broker{number}" for number in range(NAMES_SHOWN_MAX + 1)]
    assert "broker7" not in draw_network(names, {}, {}, {})


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
