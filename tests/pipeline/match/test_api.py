"""Does Spark find who wants which event, by one index and by cells, and is no task left with all the work?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.pipeline.match.api import divided_frame, match, match_input, planned
from betimes.pipeline.match.forms import Form
from betimes.pipeline.match.plan import MatchSettings
from betimes.pipeline.rows.events import EventsError
from betimes.pipeline.rows.sources import frame_rows, open_rows

SMALL = MatchSettings(index_mb_max=0.02, tasks=4)


def answers(matching):
    return {row.event: sorted(row.subscribers) for row in matching.frame.collect()}


@pytest.mark.spark
def test_both_ways_find_who_wants_what(spark):
    events, wishes = random_events(400), random_wishes(300, people=120)
    frames = spark.createDataFrame(events).repartition(3), spark.createDataFrame(wishes)
    wanted = expected(events, wishes)
    one = match(*frames)
    assert not one.plan.is_divided
    assert answers(one) == wanted
    many = match(*frames, settings=SMALL)
    assert many.plan.is_divided
    assert many.plan.is_repeated
    assert many.plan.event_copies > 1
    assert answers(many) == wanted
    for settings in (None, SMALL):
        counts = match(*frames, form=Form.COUNTS, settings=settings).frame.collect()
        assert {row.event: row["count"] for row in counts} == {
            key: len(names) for key, names in wanted.items()
        }
        pairs = match(*frames, form=Form.PAIRS, settings=settings).frame.collect()
        assert sorted((row.event, row.subscriber) for row in pairs) == sorted(
            (event, name) for event, names in wanted.items() for name in names
        )


@pytest.mark.spark
def test_files_are_read_by_tasks_and_bad_filters_are_set_aside(spark, tmp_path):
    events, wishes = random_events(300), random_wishes(80)
    bad = pa.table({name: [None] for name in wishes.schema.names}, schema=wishes.schema)
    bad = bad.set_column(0, "subscriber", pa.array(["wrong"])).set_column(
        1, "filter", pa.array(["speed >> 1"])
    )
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=50)
    pq.write_table(pa.concat_tables([wishes, bad]), tmp_path / "wishes.parquet", row_group_size=30)
    sources = [open_rows(spark, str(tmp_path / name)) for name in ("events.parquet", "wishes.parquet")]
    for settings in (MatchSettings(), SMALL):
        found = match(*sources, settings=settings)
        assert answers(found) == expected(events, wishes)
        (row,) = found.quarantine.to_pylist()
        assert (row["name"], row["reason"]) == ("wrong", "filter that cannot be read")


@pytest.mark.spark
def test_a_topic_that_most_events_have_stalls_no_task(spark):
    chance = np.random.default_rng(5)
    count, tasks = 20_000, 8
    topics = np.where(chance.random(count) < 0.9, "hot", chance.choice(["a", "b", "c", "d"], count))
    events = pa.table({"event": np.arange(count), "topic": topics.tolist(), "x": chance.random(count)})
    low = chance.random(400)
    wishes = pa.table(
        {
            "subscriber": np.arange(400),
            "topic": chance.choice(["hot", "a", "b", "c", "d"], 400).tolist(),
            "x>=": low,
            "x<=": low + 0.05,
        }
    )
    counted = frame_rows(spark.createDataFrame(events), "events")
    tables = match_input(counted, spark.createDataFrame(wishes), Form.PAIRS, ())
    wanted, _, plan = planned(tables, MatchSettings(index_mb_max=0.02, tasks=tasks))
    assert wanted is None
    assert max(share.salts for share in plan.shares) > 1
    assert plan.task_share_max < 2.0 / tasks
    frame = divided_frame(tables, plan)
    shares = frame.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()
    assert len(shares) == tasks
    assert max(shares) < 2.5 * sum(shares) / tasks
    assert sum(shares) == expected_pairs(events, wishes)


def expected_pairs(events, wishes):
    x, topic = events["x"].to_numpy(), np.array(events["topic"].to_pylist())
    return sum(
        int(np.count_nonzero((topic == wish["topic"]) & (x >= wish["x>="]) & (x <= wish["x<="])))
        for wish in wishes.to_pylist()
    )


@pytest.mark.spark
def test_tables_that_cannot_be_matched_are_refused_before_any_work(spark):
    events = spark.createDataFrame(pa.table({"speed": [1.0]}))
    with pytest.raises(EventsError, match="--id"):
        match(events, spark.createDataFrame(random_wishes(3)))
