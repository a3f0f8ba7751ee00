"""Does the demo's folder hold what it is to hold, made anew each time?"""

from __future__ import annotations

import asyncio

import pytest
from tests.pipeline.report_tables import make_tables

from betimes.demo.story import SECRET, TABLES, TELEMETRY, Story
from betimes.model.errors import BetimesError
from betimes.pipeline.telemetry.model import learn_statistics
from betimes.reporting.report_sections import findings_in
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports


def test_what_an_earlier_demo_left_is_gone(tmp_path):
    for name in (TELEMETRY, TABLES):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").touch()
    first = Story(tmp_path, ["s"])
    secret = (tmp_path / SECRET).read_text()
    assert not (tmp_path / TABLES).exists()
    assert (tmp_path / SECRET).stat().st_mode & 0o077 == 0
    options = first.broker_options("fifo")
    assert (tmp_path / TELEMETRY / "fifo").is_dir()
    assert options[options.index("--control-secret") + 1] == str(tmp_path / SECRET)
    Story(tmp_path, ["s"])
    assert (tmp_path / SECRET).read_text() != secret
    assert not (tmp_path / TELEMETRY / "fifo").exists()


def test_a_place_that_cannot_be_a_folder_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BetimesError, match="file"):
        Story(tmp_path / "file", [])


def test_what_is_foreseen_is_of_the_subscribers_who_were_named(tmp_path):
    story = Story(tmp_path, ["s"])
    make_tables(tmp_path / TABLES)
    story._statistics = learn_statistics(tmp_path / TABLES)
    assert story.foresee("eb") == {"s": 1.0}


@pytest.mark.long
def test_a_report_on_the_demo_s_tables_has_the_predictions_of_its_own_page(tmp_path, monkeypatch):
    story = Story(tmp_path, ["s"])
    tables = make_tables(tmp_path / TABLES)
    story._statistics = learn_statistics(tables)
    story.foresee("eb")
    monkeypatch.setattr(story, "learn", lambda part: None)
    page = story.tell("eb").read_text()
    found = findings_in(tables)
    assert [each.predicted for each in found.shares] == [None, 1.0]
    assert f"<b>{found.off_mean:.3f}</b>mean error of predictions" in page


@pytest.mark.live
def test_brokers_take_what_was_learned_from_who_knows_the_secret(tmp_path):
    story = Story(tmp_path, ["s"])
    make_tables(tmp_path / TABLES)
    story._statistics = learn_statistics(tmp_path / TABLES)
    options = story.broker_options("fifo")
    (port,) = free_ports(1)
    plan = FleetPlan(ports={"a": port}, links=(), settings={"anonymous": True}, options=options)
    with Fleet(plan):
        asyncio.run(story.tell_brokers(plan.ports))
        story._secret = "another"
        with pytest.raises(BetimesError, match="did not accept the model"):
            asyncio.run(story.tell_brokers(plan.ports))
