"""Is an index prepared once, refreshed when asked, and gone when released?"""

from __future__ import annotations

import doctest

import pyarrow as pa
import pytest
from tests.pipeline.broadcasts import broadcast_files, is_collected
from tests.pipeline.match_tables import expected, random_events, random_wishes

import betimes.spark.index
from betimes.pipeline.rows.subscriptions import SubscriptionsError
from betimes.spark import PrepareError, SubscriptionIndex, match, prepare


def lists(frame):
    return {row.event: sorted(row.subscribers) for row in frame.collect()}


@pytest.mark.spark
def test_the_examples_of_prepare_hold(spark):
    names = {"spark": spark, "match": match, "prepare": prepare}
    (example,) = doctest.DocTestFinder().find(betimes.spark.index.prepare, "prepare", globs=names)
    assert len(example.examples) > 5
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.spark
def test_an_index_is_prepared_once_refreshed_and_gone_when_released(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = broadcast_files(spark)
    events, wishes, others = random_events(200), random_wishes(60), random_wishes(40, seed=9)
    frame = spark.createDataFrame(events)
    with prepare(spark.createDataFrame(wishes)) as index:
        assert len(index) == 60
        assert index.size_mb > 0
        old = match(frame, index)
        assert lists(old.matches) == expected(events, wishes)
        assert len(broadcast_files(spark) - before) == 1
        index.refresh(spark.createDataFrame(others))
        assert lists(match(frame, index).matches) == expected(events, others)
        assert lists(old.matches) == expected(events, wishes)
        with pytest.raises(SubscriptionsError):
            index.refresh(frame)
        assert len(index) == 40
    with pytest.raises(PrepareError, match="was released"):
        match(frame, index)
    index.release()
    del old
    assert is_collected(spark, before)
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_a_released_index_is_dropped_by_spark_at_once(spark):
    before = broadcast_files(spark)
    index = prepare(spark.createDataFrame(random_wishes(50)))
    match(spark.createDataFrame(random_events(3)), index).matches.collect()
    assert broadcast_files(spark) != before
    index.release()
    assert not broadcast_files(spark) - before


@pytest.mark.spark
def test_a_stream_in_batches_is_matched_with_one_index_and_sees_a_refresh(spark, tmp_path):
    events = random_events(90)
    found = []

    def each_batch(frame, number):
        found.append(lists(match(frame, index).matches))
        index.refresh(spark.createDataFrame(random_wishes(30, seed=number + 1)))

    for part in range(3):
        spark.createDataFrame(events.slice(30 * part, 30)).coalesce(1).write.mode("append").parquet(
            str(tmp_path / "events")
        )
    schema = spark.createDataFrame(events).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    with prepare(spark.createDataFrame(random_wishes(30, seed=0))) as index:
        query = reader.parquet(str(tmp_path / "events")).writeStream.foreachBatch(each_batch)
        query.trigger(availableNow=True).start().awaitTermination()
    whole = [expected(events, random_wishes(30, seed=seed)) for seed in range(3)]
    assert len(found) == 3
    for answer, wanted in zip(found, whole, strict=True):
        assert answer
        assert answer.items() <= wanted.items()


@pytest.mark.spark
def test_subscriptions_beyond_a_limit_are_refused_with_a_hint(spark):
    wishes = spark.createDataFrame(random_wishes(300))
    with pytest.raises(PrepareError, match=r"more than 299 rows\nhint: match\(events, subscriptions\)"):
        prepare(wishes, rows_max=299)
    with pytest.raises(PrepareError, match=r"more than 0\.001\nhint: match"):
        prepare(wishes, index_mb_max=0.001)
    assert len(SubscriptionIndex(wishes, rows_max=300, index_mb_max=10)) == 300
    stream = spark.readStream.format("rate").load()
    with pytest.raises(PrepareError, match="streaming frame"):
        prepare(stream)


@pytest.mark.spark
def test_an_index_of_nothing_but_bad_rows_finds_nothing_and_says_why(spark):
    wishes = spark.createDataFrame(pa.table({"subscriber": ["a", None], "filter": ["speed >", "TRUE"]}))
    events = spark.createDataFrame(random_events(5))
    with prepare(wishes) as index:
        assert match(events, index).matches.collect() == []
        rows = {row.place: row.reason for row in index.rejected.collect()}
    assert rows == {"subscriber a": "filter that cannot be read", "row 2": "missing value"}
    assert match(events, wishes).matches.collect() == []
