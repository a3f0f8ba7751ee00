"""Are links, brokers and publishers described as they were?"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tests.pipeline.records import opened, record

from betimes.model.telemetry import Published, Queued, Received, Sent
from betimes.pipeline.telemetry.distributions import (
    SAMPLE_MAX,
    broker_distributions,
    link_distributions,
    link_losses,
    publisher_distributions,
    wait_distributions,
)
from betimes.pipeline.telemetry.histograms import HistogramShape

pytestmark = pytest.mark.spark

ROLES = {
    "sent": {"broker": "source", "neighbour": "target"},
    "received": {"neighbour": "source", "broker": "target"},
}


def frames(spark, directory, records):
    telemetry = opened(spark, directory, records)
    return {kind: frame.withColumnsRenamed(ROLES.get(kind, {})) for kind, frame in telemetry.frames.items()}


def test_waits_are_counted_by_what_rows_stand_for(spark, tmp_path):
    records = [record(Sent, wait_s=wait_s) for wait_s in (0.0, 1.0)]
    records += [record(Sent, wait_s=4.0, share=0.5), record(Sent, wait_s=1e-9, publisher="q")]
    found = wait_distributions(frames(spark, tmp_path, records)["sent"]).orderBy("publisher").collect()
    assert [(row.publisher, row.broker, row.target, row.count_rows) for row in found] == [
        ("p", "a", "b", 3),
        ("q", "a", "b", 1),
    ]
    assert (found[0]["count"], found[0].waited_share, found[0].wait_s_mean) == (4.0, 0.75, 2.25)
    assert found[0].wait_s_variance == pytest.approx(np.var([0.0, 1.0, 4.0, 4.0]))
    assert (found[1].waited_share, found[0].wait_s_most) == (0.0, 4.0)


def test_matching_is_a_line_over_what_is_stored(spark, tmp_path):
    records = [
        record(Published, number=stored, stored=stored, matching_s=1e-4 + 2e-6 * stored)
        for stored in (10, 20, 50)
    ]
    records += [record(Published, broker="b", number=number, matching_s=0.001) for number in range(2)]
    records += [record(Queued, queue_length=length) for length in (1, 4)]
    telemetry = frames(spark, tmp_path, records)
    found = broker_distributions(telemetry["published"], telemetry["queued"]).orderBy("broker").collect()
    assert found[0].matching_s_slope == pytest.approx(2e-6)
    assert found[0].matching_s_intercept == pytest.approx(1e-4)
    assert (found[0].stored_mean, found[0].queue_length_mean) == (pytest.approx(80 / 3), 2.5)
    assert (found[1].matching_s_slope, found[1].queue_length_mean) == (0.0, None)
    assert found[1].matching_s_intercept == pytest.approx(0.001)


def test_what_never_came_off_a_link_is_lost(spark, tmp_path):
    records = [record(Sent, number=number) for number in range(10)]
    arrived = [number for number in range(10) if number not in (0, 3, 4, 9)]
    records += [record(Received, broker="b", neighbour="a", number=number) for number in arrived]
    records += [record(Sent, number=1, neighbour="c"), record(Sent, number=2, neighbour="d")]
    telemetry = frames(spark, tmp_path, records)
    every = {"b": 1, "c": 1}  # of d nothing is known
    found = link_losses(telemetry["sent"], telemetry["received"], every, is_unfinished=False).collect()
    # 0 and 9 may be under way, or older than what the receiver has kept.
    assert sorted(map(tuple, found)) == [("a", "b", 8.0, 2.0), ("a", "c", 1.0, 1.0)]
    going_on = link_losses(telemetry["sent"], telemetry["received"], every, is_unfinished=True).collect()
    assert sorted(map(tuple, going_on)) == [("a", "b", 8.0, 2.0)]


def test_a_receiver_that_writes_down_less_has_not_lost_the_rest(spark, tmp_path):
    records = [record(Sent, number=number, share=0.5) for number in range(0, 100, 2)]
    records += [
        record(Received, broker="b", neighbour="a", number=number, share=0.1) for number in range(0, 100, 10)
    ]
    telemetry = frames(spark, tmp_path, records)
    (row,) = link_losses(telemetry["sent"], telemetry["received"], {"b": 10}, is_unfinished=False).collect()
    assert (row.sent, row.lost) == (100.0, 0.0)


def test_a_link_with_losses_only_is_a_link_too(spark):
    losses = spark.createDataFrame(
        [("a", "b", 4.0, 1.0), ("a", "c", 2.0, 2.0)], "source string, target string, sent double, lost double"
    )
    spread = HistogramShape(rows=3, count=3.0, mean=0.5, variance=0.1, cells=((0.4, 0.6, 3.0),))
    found = link_distributions(spark, {("a", "b"): spread}, losses).orderBy("target").collect()
    assert (found[0].loss, found[0].s_per_kb_mean, len(found[0].s_per_kb_weights)) == (0.25, 0.5, 200)
    assert (found[1].loss, found[1].s_per_kb_mean) == (1.0, None)


def published(times_s, **given):
    return [
        record(Published, number=number + 1, time_s=time_s, **given) for number, time_s in enumerate(times_s)
    ]


def test_rate_burstiness_and_sizes_of_a_publisher(spark, tmp_path):
    times_s = np.cumsum(np.random.default_rng(3).gamma(0.5, 2.0, 2000))
    records = published(times_s)
    frame = frames(spark, tmp_path, records)["published"]
    (row,) = publisher_distributions(frame).collect()
    gaps = np.diff(times_s)
    assert row.rate_per_s == pytest.approx(1.0 / gaps.mean())
    assert row.gaps_scv == pytest.approx(gaps.var() / gaps.mean() ** 2, rel=1e-4)
    assert (row.size_kb_mean, row.size_kb_variance, row.first_s) == (2.0, 0.0, times_s[0])


def test_of_one_in_ten_events_the_same_is_learned(spark, tmp_path):
    gaps_s = np.random.default_rng(4).gamma(2.0, 0.5, 20_000)
    every = published(np.cumsum(gaps_s), share=0.1)[9::10]
    frame = frames(spark, tmp_path, every)["published"]
    (row,) = publisher_distributions(frame).collect()
    assert row["count"] == 20_000.0
    assert row.rate_per_s == pytest.approx(1.0, rel=0.02)
    assert row.gaps_scv == pytest.approx(0.5, rel=0.1)


def test_of_some_events_of_several_publishers_burstiness_is_unknown(spark, tmp_path):
    records = published([1.0, 2.0, 4.0], share=0.5) + published([1.5, 2.5], share=0.5, publisher="q")
    found = (
        publisher_distributions(frames(spark, tmp_path, records)["published"]).orderBy("publisher").collect()
    )
    assert [row.gaps_scv for row in found] == [None, None]
    assert [row.rate_per_s for row in found] == [pytest.approx(8 / 3 * 0.6), pytest.approx(8 / 3 * 0.4)]


def test_a_sample_is_bounded_the_same_in_every_run_and_stands_for_all(spark, tmp_path):
    records = [
        record(Published, number=number, content=json.dumps({"x": number}), deadline_s=math.inf)
        for number in range(SAMPLE_MAX + 500)
    ]
    records.append(record(Published, number=9999, content=json.dumps({"x": "y" * 5000})))
    frame = frames(spark, tmp_path, records)["published"]
    first, second = (publisher_distributions(frame.repartition(parts)).collect()[0] for parts in (1, 3))
    assert first.sample == second.sample
    assert len(first.sample) == SAMPLE_MAX
    assert sum(each.weight for each in first.sample) == pytest.approx(1501)
    numbers = [json.loads(each.content)["x"] for each in first.sample]
    assert 600 < np.mean(numbers) < 900  # from everywhere
