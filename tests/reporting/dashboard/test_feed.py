"""Does a dashboard hear its brokers, their alarms, and what the pipeline learned?"""

from __future__ import annotations

import asyncio

import pytest
from tests.pipeline.report_tables import NASTY, make_empty_tables, make_tables, put_rows

from betimes.model.errors import BetimesError
from betimes.pipeline.tables.shapes import PREDICTIONS
from betimes.reporting.dashboard.feed import ALARMS_MAX, Feed, subscriber_rows
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports


def test_subscribers_are_told_with_what_was_promised_predicted_and_measured(tmp_path):
    folder = make_tables(tmp_path) / "current"
    put_rows(folder, PREDICTIONS, [{"subscriber": "s", "home": "b", "pattern": "#", "on_time_share": 0.77}])
    by_name = {row["subscriber"]: row for row in subscriber_rows(tmp_path)}
    assert (by_name["s"]["predicted"], by_name["s"]["measured"], by_name["s"]["promised"]) == (
        0.77,
        0.8,
        None,
    )
    assert by_name[NASTY]["promised"] is None, "it was refused"
    assert by_name[NASTY]["predicted"] is None


def test_of_no_tables_it_is_said_so(tmp_path):
    with pytest.raises(BetimesError, match="no tables"):
        subscriber_rows(tmp_path)
    assert subscriber_rows(make_empty_tables(tmp_path)) == []


def test_alarms_are_kept_the_newest_first_and_nonsense_is_left_out():
    feed = Feed([], None, None)
    for number in range(ALARMS_MAX + 5):
        feed.take_alarm(b'{"number": %d}' % number)
    for nonsense in (b"", b"[1]", b"{", b"[" * 100_000, b"\xff"):
        feed.take_alarm(nonsense)
    assert len(feed.alarms) == ALARMS_MAX
    assert feed.alarms[0] == {"number": ALARMS_MAX + 4}


@pytest.mark.live
def test_a_broker_that_answers_is_heard_and_one_that_does_not_is_named():
    port, metrics_port, nobody = free_ports(3)
    plan = FleetPlan(
        ports={"b1": port},
        links=(),
        settings={"anonymous": True},
        own_settings={"b1": {"metrics_port": metrics_port}},
    )
    address = f"http://127.0.0.1:{metrics_port}"
    feed = Feed(
        [f"{address}/metrics", f"{address}/nothing", f"http://127.0.0.1:{nobody}/metrics"], None, None
    )
    with Fleet(plan):
        asyncio.run(feed.look_once())
    assert [facts.name for facts in feed.watch.brokers.values()] == ["b1"]
    assert len(feed.watch.silent) == 2
    assert any("404" in why for why in feed.watch.silent.values())
    assert len(feed.watch.history) == 1
