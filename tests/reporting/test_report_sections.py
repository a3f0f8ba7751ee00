"""Does a report say what the tables say, and say so where they say nothing?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.pipeline.report_tables import NASTY, make_empty_tables, make_tables, put_rows

from betimes.pipeline.tables.predictions import BY_TWIN
from betimes.pipeline.tables.report_facts import FlowFacts, Leg
from betimes.pipeline.tables.shapes import PREDICTIONS
from betimes.prediction.forecasts import ForecastModel
from betimes.reporting.report_sections import (
    FIRST_COME,
    FORETOLD,
    NOTHING,
    findings_in,
    report_sections,
    ways_of,
)


@pytest.fixture
def found(tmp_path):
    return findings_in(make_tables(tmp_path), ForecastModel.WAIT)


def test_the_worst_served_come_first_beside_what_is_predicted_of_them(found):
    assert [each.name for each in found.shares] == [f"{NASTY} at c", "s at b"]
    assert [each.measured for each in found.shares] == [0.6, 0.8]
    assert all(each.predicted is not None and 0.9 < each.predicted <= 1.0 for each in found.shares)
    assert found.off_mean == pytest.approx(
        sum(each.predicted - each.measured for each in found.shares) / 2, abs=1e-9
    )


@pytest.mark.long
def test_what_a_twin_foretold_stands_in_place_of_what_would_be_predicted(tmp_path):
    tables = make_tables(tmp_path)
    told = {"subscriber": "s", "home": "b", "pattern": "#", "model": BY_TWIN, "on_time_share": 0.75}
    put_rows(tables / "current", PREDICTIONS, [told])
    found = findings_in(tables)
    assert [each.predicted for each in found.shares] == [None, 0.75]
    assert found.off_mean == pytest.approx(0.05)
    assert any(f"0.050 off on average. {FORETOLD}" in text for text in report_sections(found)[0].texts)
    asked = findings_in(tables, ForecastModel.WAIT)
    assert asked.predicted_by == FIRST_COME
    assert asked.off_mean == pytest.approx(0.3, abs=0.01)


def test_what_the_control_centre_predicted_by_a_model_is_predicted_anew(tmp_path):
    tables = make_tables(tmp_path)
    told = {"subscriber": "s", "home": "b", "pattern": "#", "model": "wait", "on_time_share": 0.25}
    put_rows(tables / "current", PREDICTIONS, [told])
    found = findings_in(tables)
    assert found.predicted_by == FIRST_COME
    assert all(each.predicted != 0.25 for each in found.shares)


@pytest.mark.long
def test_every_section_has_something_to_say(found):
    sections = {each.key: each for each in report_sections(found)}
    assert list(sections)[:2] == ["on-time", "network"]
    assert all(NOTHING not in each.texts for each in sections.values())
    assert sections["drops"].tables[0].rows == [("hopeless", 4.0), ("expired", 1.0)]
    assert "24 of the 40" in sections["earning"].texts[0]
    assert [row[0] for row in sections["links"].tables[0].rows] == ["a->b", "b->c"]
    assert not any("not known" in text for text in sections["links"].texts)
    unseen = {each.key: each for each in report_sections(replace(found, speeds={}))}
    assert "There is no measured distribution of a->b, b->c." in unseen["links"].texts
    assert sections["promises"].tables[0].rows[0][-2:] == ("refused", "0.7 < 0.9")
    assert "still writing" in sections["doubts"].texts[0]
    assert sections["doubts"].tables[0].rows == [("duplicate", 2)]


def test_of_a_network_in_which_nothing_happened_a_report_says_so(tmp_path):
    found = findings_in(make_empty_tables(tmp_path), ForecastModel.WAIT)
    sections = {each.key: each for each in report_sections(found)}
    assert found.off_mean is None
    assert not any(each.pictures for each in sections.values())
    assert sections["drops"].texts == ["Nothing was dropped."]
    assert sections["on-time"].texts == [NOTHING]


def leg(source: str, target: str, origin: str = "a") -> Leg:
    return Leg(origin=origin, source=source, target=target, count=1.0, wait_s_mean=1.0, transfer_s_mean=0.5)


def test_a_way_is_the_shortest_chain_of_links_that_its_messages_took():
    legs = [leg("a", "b"), leg("b", "c"), leg("a", "x"), leg("x", "b"), leg("b", "d", origin="b")]
    flow = FlowFacts(origin="a", home="c", delivered=2.0)
    away = FlowFacts(origin="a", home="d", delivered=9.0)
    here = FlowFacts(origin="a", home="a", delivered=9.0)
    (way,) = ways_of(legs, [flow, away, here])
    assert way.name == "a to c"
    assert [step[0] for step in way.steps] == ["a → b", "b → c"]
