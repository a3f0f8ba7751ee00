"""Is it told in each form who wants what?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.pipeline.match.forms import (
    PAIRS_AT_ONCE,
    STEP_MAX,
    Form,
    Steps,
    answer_schema,
    answered,
    plain_texts,
    subscribers_of,
)
from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.subscription_set import SubscriptionSet
from betimes.pipeline.rows.subscriptions import SubscriptionShape, read_subscriptions


def rows_of(events, wishes, form):
    wanted = SubscriptionSet(read_subscriptions(wishes, SubscriptionShape.of(wishes.schema))[0])
    (rows,) = events.combine_chunks().to_batches()
    shape = EventShape.of(events.schema)
    schema = answer_schema([events.schema.field("event")], form, wishes.schema.field("subscriber").type)
    columns = event_columns(rows, shape, wanted.attributes)
    answer = answered([rows.column("event")], columns, wanted, form, schema)
    return plain_texts(answer.rows, schema).to_pylist(), answer


@pytest.mark.long
@pytest.mark.parametrize("count", [50, 2000])
def test_all_forms_say_the_same(count):
    events, wishes = random_events(40), random_wishes(count)
    wanted = expected(events, wishes)
    lists, answer = rows_of(events, wishes, Form.LISTS)
    assert {row["event"]: sorted(row["subscribers"]) for row in lists} == wanted
    assert (answer.wanted, answer.pairs) == (len(wanted), sum(map(len, wanted.values())))
    pairs, answer = rows_of(events, wishes, Form.PAIRS)
    assert sorted((row["event"], row["subscriber"]) for row in pairs) == sorted(
        (event, name) for event, names in wanted.items() for name in names
    )
    assert (answer.wanted, answer.pairs) == (len(wanted), len(pairs))
    counts, answer = rows_of(events, wishes, Form.COUNTS)
    assert {row["event"]: row["count"] for row in counts} == {
        key: len(names) for key, names in wanted.items()
    }
    assert answer.wanted == len(wanted)


@pytest.mark.parametrize("form", list(Form))
def test_an_event_that_cannot_be_read_has_a_row_without_an_answer(form):
    events = pa.table({"event": [1, 2, 3], "content": ['{"x": 5}', "{", '{"x": 0}']})
    wishes = pa.table({"subscriber": [7, 8], "filter": ["TRUE", "x > 1"]})
    rows, answer = rows_of(events, wishes, form)
    name = {"lists": "subscribers", "pairs": "subscriber", "counts": "count"}[form]
    assert [row["event"] for row in rows if row[name] is None] == [2]
    assert (answer.wanted, answer.pairs) == (2, 3)


def test_subscribers_keep_their_type():
    keys = np.array([2, 0], np.int32)
    assert subscribers_of(keys, pa.array([5, 6, 7]), pa.list_(pa.int64())).to_pylist() == [7, 5]
    assert subscribers_of(keys, pa.array([5, 6, None]), pa.list_(pa.int64())).to_pylist() == [None, 5]
    assert subscribers_of(keys, pa.array(["a", "b", "c"]), pa.string()).to_pylist() == ["c", "a"]
    assert answer_schema([], Form.LISTS, pa.dictionary(pa.int8(), pa.string())).types == [
        pa.list_(pa.string())
    ]


def test_fewer_events_are_taken_at_once_where_each_finds_many():
    steps = Steps()
    rows = pa.RecordBatch.from_pydict({"event": np.arange(5000)})
    assert sum(some.num_rows for some in steps.of(rows)) == 5000
    steps.learn(100, 100 * (PAIRS_AT_ONCE // 50))
    assert steps.size == 50
    for _ in range(9):
        steps.learn(100, 0)
    assert steps.size == STEP_MAX
