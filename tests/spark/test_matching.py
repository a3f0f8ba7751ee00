"""Does `match` find who wants what in batch and streaming frames, and hand back what it cannot read?"""

from __future__ import annotations

import doctest

import pyarrow as pa
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

import betimes.spark.matching
from betimes.model.errors import SettingError
from betimes.pipeline.rows.events import EventsError
from betimes.pipeline.rows.sources import RowsError
from betimes.spark import StreamError, match, prepare
from betimes.spark.rejected import REJECTED


@pytest.mark.spark
def test_the_examples_of_match_hold(spark):
    names = {"spark": spark, "match": match}
    (example,) = doctest.DocTestFinder().find(betimes.spark.matching.match, "match", globs=names)
    assert len(example.examples) > 4
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.spark
def test_a_streaming_frame_is_matched_as_a_batch_is(spark, tmp_path):
    events, wishes = random_events(120), random_wishes(40)
    frame, wanted = spark.createDataFrame(events), spark.createDataFrame(wishes)
    frame.write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "events"))
    found = match(stream, wanted)
    assert found.matches.isStreaming
    assert found.rejected.isStreaming
    query = found.matches.writeStream.format("memory").queryName("streamed")
    query.trigger(availableNow=True).start().awaitTermination()
    rows = spark.table("streamed").collect()
    assert {row.event: sorted(row.subscribers) for row in rows} == expected(events, wishes)
    with pytest.raises(StreamError, match="too many for one index"):
        match(stream, wanted, index_mb_max=0.001)
    with pytest.raises(StreamError, match="subscriptions: is a streaming frame"):
        match(frame, spark.readStream.format("rate").load())


@pytest.mark.spark
def test_no_job_runs_before_the_frames_are_computed(spark):
    def fail(batches):
        raise AssertionError("an event was read")

    events = spark.createDataFrame(random_events(3)).mapInArrow(fail, "event bigint, content string")
    with prepare(spark.createDataFrame(random_wishes(10))) as index:
        found = match(events, index, form="counts")
        assert found.matches.columns == ["event", "count"]
        assert found.rejected.columns == REJECTED.names


@pytest.mark.spark
def test_bad_events_and_bad_subscriptions_come_back_with_their_places(spark):
    events = pa.table({"event": [1, 2, None], "content": ['{"speed": 60}', "[]", "{}"]})
    wishes = pa.table({"subscriber": ["a", "b"], "filter": ["speed > 50", "speed >"]})
    frames = spark.createDataFrame(events), spark.createDataFrame(wishes)
    for index_mb_max in (512.0, 0.0001):
        found = match(*frames, index_mb_max=index_mb_max)
        assert [(row.event, row.subscribers) for row in found.matches.collect()] == [(1, ["a"])]
        rows = sorted((row.source, row.place) for row in found.rejected.collect())
        assert rows == [("events", "event 2"), ("events", "event None"), ("subscriptions", "subscriber b")]


@pytest.mark.spark
def test_arguments_that_cannot_be_matched_are_refused_with_a_hint(spark):
    events, wishes = spark.createDataFrame(random_events(3)), spark.createDataFrame(random_wishes(3))
    with pytest.raises(SettingError, match="write lists, pairs, counts"):
        match(events, wishes, form="rows")
    with pytest.raises(EventsError, match="ids"):
        match(events.drop("event"), wishes)
    renamed = events.withColumnRenamed("event", "Subscribers")
    with pytest.raises(EventsError, match="is one of the answer's"):
        match(renamed, wishes, ids=["Subscribers"])
    with pytest.raises(RowsError, match="'speed' more than once"):
        match(events.select("event", "speed", "speed"), wishes)
    with pytest.raises(EventsError, match="cannot name events"):
        match(spark.sql("SELECT make_interval(1) event, 1 speed"), wishes)
