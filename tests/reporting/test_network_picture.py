"""Does a picture of a network show every broker and how busy each link was?"""

from __future__ import annotations

import pytest

from betimes.reporting.figure_plots import OURS
from betimes.reporting.network_picture import NAMES_SHOWN_MAX, draw_network


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
