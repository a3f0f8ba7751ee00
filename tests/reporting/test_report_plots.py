"""Does each picture of a report show what it was given?"""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from betimes.model.distributions import Constant, Histogram, Normal
from betimes.model.statistics import LinkStatistics
from betimes.pipeline.tables.report_facts import DropFacts, TimeLine
from betimes.reporting.report_plots import (
    BLUE,
    LINKS_SHOWN,
    ROWS_SHOWN,
    Share,
    Way,
    bell,
    draw_agreement,
    draw_drops,
    draw_earnings,
    draw_links,
    draw_queues,
    draw_shares,
    draw_ways,
)

pytestmark = pytest.mark.long


def texts(svg: str) -> set[str]:
    root = ET.fromstring(svg)
    return {each.text for each in root.iter() if each.tag.endswith("}text") and each.text}


def share(name: str, measured: float = 0.5, predicted: float | None = 0.6) -> Share:
    return Share(
        name=name, measured=measured, low=0.4, high=0.7, predicted=predicted, earning=2.0, offered=4.0
    )


def test_every_subscriber_has_a_row_up_to_a_bound():
    assert {"ann", "bob", "measured, 95 % interval", "predicted"} <= texts(
        draw_shares([share("ann"), share("bob")])
    )
    many = texts(draw_shares([share(f"s{number}") for number in range(ROWS_SHOWN + 3)]))
    assert f"s{ROWS_SHOWN - 1}" in many
    assert f"s{ROWS_SHOWN}" not in many


def test_who_has_no_prediction_is_shown_without_one():
    assert "predicted" not in texts(draw_shares([share("ann", predicted=None)]))
    assert "measured" in texts(draw_agreement([share("ann"), share("bob", predicted=None)]))


def test_those_who_offer_most_come_first_in_earnings():
    assert {"ann", "earned", "on offer"} <= texts(draw_earnings([share("ann")]))


def test_a_very_long_name_is_cut():
    assert any(each.endswith("…") and len(each) == 40 for each in texts(draw_shares([share("n" * 99)])))


def test_ways_show_every_link():
    way = Way(name="a to c", steps=(("a → b", 1.0, 0.5), ("b → c", 0.0, 0.2)), delivered=3.0)
    assert {"a to c", "a → b", "b → c"} <= texts(draw_ways([way]))


def test_queues_show_the_busiest_brokers():
    busy = TimeLine(broker="busy", seconds=np.array([0.0, 1.0]), waiting=np.array([0.0, 5.0]))
    assert "busy" in texts(draw_queues([busy]))


def test_drops_show_brokers_and_reasons():
    drops = [
        DropFacts(broker="a", reason="hopeless", count=3.0),
        DropFacts(broker="b", reason="expired", count=1.0),
    ]
    assert {"a", "b", "hopeless", "expired"} <= texts(draw_drops(drops))


def test_links_show_what_was_seen_and_what_is_fitted():
    spreads = (Histogram(0.01, 0.01, (1.0, 2.0, 1.0)), Normal(0.05, 0.01, low=0.0), Constant(0.02), None)
    links = [LinkStatistics(source="a", target=str(n), s_per_kb=each) for n, each in enumerate(spreads)]
    assert {"a->0", "a->1", "a->2", "a->3", "ms per kB"} <= texts(draw_links(links, {}))
    many = [
        LinkStatistics(source="a", target=f"t{n}", s_per_kb=Constant(1.0)) for n in range(LINKS_SHOWN + 1)
    ]
    assert f"a->t{LINKS_SHOWN}" not in texts(draw_links(many, {}))


def test_what_was_seen_of_a_link_is_drawn_also_where_predictions_go_by_the_bell_curve_alone():
    link = LinkStatistics(source="a", target="b", s_per_kb=Normal(0.05, 0.01, low=0.0))
    seen = Histogram(0.04, 0.01, (3.0, 1.0, 0.0, 0.5))
    assert BLUE.lower() in draw_links([link], {"a->b": seen})
    assert BLUE.lower() not in draw_links([link], {})


def test_the_bell_curve_is_a_density():
    places = np.linspace(-5.0, 9.0, 2000)
    density = bell(places, 2.0, 1.5)
    assert np.trapezoid(density, places) == pytest.approx(1.0, abs=1e-6)
    assert np.trapezoid(density * places, places) == pytest.approx(2.0, abs=1e-6)
