"""Is it found who wanted an event when it was published?"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from betimes.pipeline.tables.files import write_frame
from betimes.pipeline.tables.shapes import MATCHES, SUBSCRIPTIONS
from betimes.pipeline.telemetry.wanted_events import (
    EVENT_COLUMNS,
    Circumstances,
    WantedEvents,
    match_events,
    matches_of,
)

NOWHERE = Circumstances(folder="")


def wanted(*wishes, circumstances=NOWHERE):
    usual = {
        "subscriber": "s", "home": "b", "pattern": "#", "filter": "TRUE", "delay_s_max": 5.0, "price": 1.0,
        "reliability": 0.0, "is_shared": False, "from_s": 0.0, "until_s": None,
    }  # fmt: skip
    rows = [usual | wish for wish in wishes]
    table = pa.table({name: [row[name] for row in rows] for name in SUBSCRIPTIONS.names})
    table = table.set_column(9, "until_s", table["until_s"].cast(pa.float64()))
    return WantedEvents(table, circumstances)


def events(*given):
    usual = {
        "origin": "a", "number": 1, "broker": "a", "time_s": 10.0, "share": 1.0, "topic": "t",
        "deadline_s": math.inf, "content": '{"x": 1}',
    }  # fmt: skip
    return pa.RecordBatch.from_pylist([usual | each for each in given]).select(list(EVENT_COLUMNS))


def found(batch, wishes, circumstances=NOWHERE):
    return matches_of(batch, wishes, circumstances).to_pylist()


def who(batch, wishes, circumstances=NOWHERE):
    return [(row["number"], row["subscriber"]) for row in found(batch, wishes, circumstances)]


@pytest.mark.long
def test_filter_and_topic_must_both_meet():
    wishes = wanted(
        {"subscriber": "fast", "filter": "x > 5"},
        {"subscriber": "topic", "pattern": "a/+"},
        {"subscriber": "both", "pattern": "a/#", "filter": "x > 5"},
    )
    batch = events(
        {"number": 1, "content": '{"x": 9}'},
        {"number": 2, "topic": "a/b"},
        {"number": 3, "topic": "a/b", "content": '{"x": 9}'},
    )
    assert who(batch, wishes) == [(1, "fast"), (2, "topic"), (3, "fast"), (3, "topic"), (3, "both")]


@pytest.mark.long
def test_only_subscriptions_of_that_time_count():
    wishes = wanted({"from_s": 10.0, "until_s": 20.0})
    batch = events(
        *({"number": number, "time_s": time_s} for number, time_s in enumerate((9.9, 10.0, 19.9, 20.0)))
    )
    assert who(batch, wishes) == [(1, "s"), (2, "s")]


def test_the_time_is_that_of_the_subscribers_broker():
    ahead = Circumstances(folder="", ahead_s={"a": 100.0, "b": 3700.0})
    wishes = wanted({"from_s": 3600.0, "until_s": 3620.0}, circumstances=ahead)
    (row,) = found(events({"time_s": 10.0}, {"number": 2, "time_s": 25.0}), wishes, ahead)
    assert (row["number"], row["born_s"]) == (1, 3610.0)


def test_a_subscriber_with_several_subscriptions_gets_the_best_terms_once():
    wishes = wanted({"pattern": "t", "delay_s_max": 2.0, "price": 3.0}, {"delay_s_max": 8.0}, {"home": "c"})
    rows = found(events({"deadline_s": 6.0}), wishes)
    assert [(row["home"], row["delay_s_allowed"], row["price"]) for row in rows] == [
        ("b", 6.0, 3.0),
        ("c", 5.0, 1.0),
    ]


def test_members_of_a_shared_subscription_are_left_out():
    assert who(events({}), wanted({"is_shared": True}, {"subscriber": "plain"})) == [(1, "plain")]
    assert who(events({}), wanted({"is_shared": True})) == []


def test_events_that_the_home_does_not_write_down_do_not_count():
    sparse = Circumstances(folder="", every={"b": 4})
    wishes = wanted({}, circumstances=sparse)
    batch = events(*({"number": number, "share": 0.5} for number in (2, 4, 6, 8)))
    assert [(row["number"], row["weight"]) for row in found(batch, wishes, sparse)] == [(4, 4.0), (8, 4.0)]


def test_what_may_still_arrive_is_not_settled():
    going_on = Circumstances(folder="", last_s={"b": 100.0})
    wishes = wanted({}, {"subscriber": "patient", "delay_s_max": math.inf}, circumstances=going_on)
    batch = events(
        *({"number": number, "time_s": time_s} for number, time_s in enumerate((30.0, 50.0, 96.0)))
    )
    rows = found(batch, wishes, going_on)
    assert {(row["number"], row["subscriber"]) for row in rows if not row["is_settled"]} == {
        (1, "patient"),
        (2, "patient"),
        (2, "s"),
    }


def test_nothing_is_found_for_nobody():
    assert found(events({}).slice(0, 0), wanted({})) == []


@pytest.mark.spark
def test_tasks_read_the_subscriptions_of_the_run(spark, tmp_path):
    wish = [("s", "b", "#", f"x < {limit}", 5.0, 1.0, 0.0, False, 0.0, None) for limit in (10, 20)]
    write_frame(spark.createDataFrame(wish, SUBSCRIPTIONS.ddl), SUBSCRIPTIONS, tmp_path)
    batch = events(*({"number": number, "content": f'{{"x": {number}}}'} for number in range(30)))
    frame = spark.createDataFrame(pa.Table.from_batches([batch])).repartition(2)
    rows = frame.mapInArrow(partial(match_events, Circumstances(folder=str(tmp_path))), MATCHES.ddl).collect()
    assert sorted(row.number for row in rows) == list(np.arange(20))


@pytest.mark.spark
def test_without_subscriptions_nobody_wants_anything(spark, tmp_path):
    write_frame(spark.createDataFrame([], SUBSCRIPTIONS.ddl), SUBSCRIPTIONS, tmp_path)
    frame = spark.createDataFrame(pa.Table.from_batches([events({})]))
    assert (
        frame.mapInArrow(partial(match_events, Circumstances(folder=str(tmp_path))), MATCHES.ddl).count() == 0
    )
