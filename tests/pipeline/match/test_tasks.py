"""Does a task write the answer for its events, and tell of it?"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.pipeline.match.forms import Form, answer_schema
from betimes.pipeline.match.shared_set import SetPlace
from betimes.pipeline.match.tasks import (
    SPLIT_TYPES,
    WRITTEN,
    WRITTEN_SCHEMA,
    AnswerFile,
    MatchTask,
)
from betimes.pipeline.rows.events import EventShape
from betimes.pipeline.rows.sources import PieceReader
from betimes.pipeline.rows.subscription_set import SubscriptionSet, digest_of, save_set, set_parts
from betimes.pipeline.rows.subscriptions import SubscriptionShape, read_subscriptions


def task(events, wishes, tmp_path, form=Form.LISTS):
    wanted = SubscriptionSet(read_subscriptions(wishes, SubscriptionShape.of(wishes.schema))[0])
    save_set(wanted, tmp_path / "wishes.set")
    shape = EventShape.of(events.schema)
    kind = wishes.schema.field("subscriber").type
    return MatchTask(
        place=SetPlace(digest=digest_of(set_parts(wanted)), path=str(tmp_path / "wishes.set")),
        reader=PieceReader(in_files=False, name="events"),
        shape=shape,
        form=form,
        columns=tuple(shape.needed(wanted.attributes)),
        schema=answer_schema([events.schema.field("event")], form, kind),
    )


def test_a_task_hands_the_answer_to_spark(tmp_path):
    events, wishes = random_events(300), random_wishes(50)
    made = task(events, wishes, tmp_path)
    rows = [row for batch in made.to_spark(iter(events.to_batches(64))) for row in batch.to_pylist()]
    assert {row["event"]: sorted(row["subscribers"]) for row in rows} == expected(events, wishes)


@pytest.mark.long
def test_a_task_writes_a_file_and_tells_of_it(tmp_path):
    events, wishes = random_events(300), random_wishes(50)
    wanted = expected(events, wishes)
    for form in Form:
        (told,) = task(events, wishes, tmp_path, form).to_file(tmp_path, iter(events.to_batches(64)))
        (row,) = told.to_pylist()
        assert (row["events"], row["wanted"]) == (300, len(wanted))
        assert row["pairs"] == sum(map(len, wanted.values()))
        written = pq.read_table(tmp_path / row["file"])
        assert written.num_rows == (row["pairs"] if form is Form.PAIRS else len(wanted))


def test_events_that_cannot_be_read_are_told_with_their_places(tmp_path):
    events = pa.table({"event": [1, 2], "content": ["{}", "{"]})
    wishes = pa.table({"subscriber": ["a"], "filter": ["x > 1"]})
    (told,) = task(events, wishes, tmp_path).to_file(tmp_path, iter(events.to_batches()))
    (row,) = told.to_pylist()
    assert row["unreadable"] == 1
    (named,) = json.loads(row["listed"])
    assert (named["source"], named["row"]) == ("events", 2)


def test_no_file_is_written_where_nobody_wants_anything(tmp_path):
    events = pa.table({"event": [1], "x": [0.0]})
    wishes = pa.table({"subscriber": ["a"], "x>=": [1.0]})
    (told,) = task(events, wishes, tmp_path).to_file(tmp_path, iter(events.to_batches()))
    assert told.to_pylist()[0]["file"] is None
    assert list(tmp_path.glob("*.parquet")) == []
    with AnswerFile(tmp_path / "none.parquet") as file:
        file.write(events.to_batches()[0].slice(0, 0))
    assert not (tmp_path / "none.parquet").exists()


@pytest.mark.spark
@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint32(), pa.int8(), pa.float64()], ids=str)
@pytest.mark.parametrize("is_list", [True, False])
def test_numbers_are_read_by_spark_as_they_were_written(spark, tmp_path, kind, is_list):
    numbers = pa.array([[1, 120], [], [7]] if is_list else [1, 120, 7])
    answer = numbers.cast(pa.list_(kind) if is_list else kind)
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), answer], names=["event", "answer"])
    with AnswerFile(tmp_path / "some.parquet") as file:
        file.write(rows)
    column = pq.read_metadata(tmp_path / "some.parquet").row_group(0).column(1)
    assert ("BYTE_STREAM_SPLIT" in column.encodings) == (kind in SPLIT_TYPES)
    read = spark.read.parquet(str(tmp_path / "some.parquet")).orderBy("event").collect()
    assert [row.answer for row in read] == answer.to_pylist()


def test_both_ways_to_say_the_columns_agree():
    assert [name.split()[0] for name in WRITTEN.split(", ")] == WRITTEN_SCHEMA.names
