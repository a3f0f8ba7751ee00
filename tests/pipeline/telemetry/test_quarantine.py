"""Do bad rows go to quarantine with their reason, and only those?"""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.pipeline.records import opened, record, written

from betimes.model.telemetry import Dropped, Published, Received, Record, Subscribed
from betimes.pipeline.telemetry.input import open_telemetry, union
from betimes.pipeline.telemetry.quarantine import (
    VERDICT,
    judged,
    quarantine_rows,
    sort_out,
    with_unreadable_texts,
)

BROKERS = ["a", "b"]
BAD: list[tuple[type[Record], dict[str, Any], str, str]] = [
    (Received, {"time_s": -1.0}, "impossible time", "time_s is -1.0"),
    (Received, {"time_s": math.nan}, "impossible time", "time_s is NaN"),
    (Received, {"age_s": math.inf}, "impossible time", "age_s is Infinity"),
    (Received, {"transfer_s": -0.1}, "impossible time", "transfer_s is -0.1"),
    (Received, {"size_kb": 0.0}, "impossible value", "size_kb is 0.0"),
    (Received, {"share": 1.5}, "impossible value", "share is 1.5"),
    (Received, {"number": -1}, "impossible value", "number is -1"),
    (Received, {"neighbour": "nowhere"}, "unknown broker", "neighbour is nowhere"),
    (Received, {"broker": "stranger"}, "unknown broker", "broker is stranger"),
    (Published, {"deadline_s": math.nan}, "impossible time", "deadline_s is NaN"),
    (Published, {"content": "{"}, "impossible value", "content is {"),
    (Published, {"content": "[1]"}, "impossible value", "content is [1]"),
    (Dropped, {"destination": "nowhere"}, "unknown broker", "destination is nowhere"),
]


@pytest.mark.spark
def test_a_bad_row_is_told_why_and_good_ones_stay(spark, tmp_path):
    kinds = dict.fromkeys(kind for kind, *_ in BAD)
    records = [record(kind, number=7) for kind in kinds]
    records += [record(kind, **given) for kind, given, _, _ in BAD]
    records.append(record(Published, number=8, content='{"x": NaN, "y": "NaN"}'))
    telemetry = opened(spark, tmp_path, records)
    for kind in kinds:
        name = kind.__name__.lower()
        frame = judged(telemetry.frames[name], name, BROKERS)
        told = {(row.reason, row.detail) for row in quarantine_rows(frame, name).collect()}
        assert told == {(reason, detail) for each, _, reason, detail in BAD if each is kind}
        good = {row.number for row in frame.filter(f"{VERDICT} IS NULL").collect()}
        assert good == ({7, 8} if kind is Published else {7})


@pytest.mark.spark
def test_what_is_in_quarantine_says_where_it_stood_and_what_it_was(spark, tmp_path):
    telemetry = opened(spark, tmp_path, [record(Received, time_s=-1.0)])
    (row,) = quarantine_rows(judged(telemetry.frames["received"], "received", BROKERS), "received").collect()
    assert row.file.endswith("received/part-00000.parquet")
    assert '"time_s":-1.0' in row.content
    assert row.kind == "received"


@pytest.mark.spark
def test_a_filter_or_pattern_that_cannot_be_read_is_told(spark, tmp_path):
    given = [{"filter": "speed >"}, {"pattern": "a#"}, {"pattern": "$share/g/a/+"}]
    telemetry = opened(spark, tmp_path, [record(Subscribed, **each) for each in given])
    frame = with_unreadable_texts(judged(telemetry.frames["subscribed"], "subscribed", BROKERS))
    told = {row.detail for row in quarantine_rows(frame, "subscribed").collect()}
    assert told == {"filter is speed >", "pattern is a#"}
    assert [row.pattern for row in frame.filter(f"{VERDICT} IS NULL").collect()] == ["$share/g/a/+"]


@pytest.mark.spark
def test_a_row_that_is_there_twice_counts_once(spark, tmp_path):
    alike = [record(Received, number=number) for number in (1, 1, 2)]
    lost = [record(Dropped)] * 2  # two subscribers missed it, and each is a row
    written(tmp_path, [*alike, *lost], label="a")
    written(tmp_path, [record(Received, number=2), record(Dropped)], label="copy")
    telemetry = open_telemetry(spark, tmp_path)
    good, bad_frames = sort_out(telemetry.frames, BROKERS, tmp_path)
    assert sorted(row.number for row in good["received"].collect()) == [1, 2]
    assert good["dropped"].count() == 2
    bad = [(row.kind, row.reason) for row in union(bad_frames).collect()]
    assert sorted(bad) == [("dropped", "duplicate")] + [("received", "duplicate")] * 2


@pytest.mark.spark
def test_only_kinds_with_a_bad_row_are_judged_again(spark, tmp_path):
    twice = [record(Received, number=1)] * 2
    records = [record(Published, number=1), *twice, record(Received, size_kb=0.0)]
    telemetry = opened(spark, tmp_path, [*records, record(Subscribed, filter="speed >")])
    good, bad_frames = sort_out(telemetry.frames, BROKERS, tmp_path)
    assert [row.number for row in good["received"].collect()] == [1]
    assert [row.number for row in good["published"].collect()] == [1]
    assert sorted(row.kind for row in union(bad_frames).collect()) == ["received", "received", "subscribed"]
    assert len(bad_frames) == 2
