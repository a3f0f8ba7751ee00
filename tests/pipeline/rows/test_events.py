"""Do stored tables of events become the events that they say?"""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest

from betimes.pipeline.rows.events import (
    EventsError,
    EventShape,
    event_columns,
    is_attribute,
    is_number,
    is_text,
    is_value,
    number_column,
    text_column,
)

EVERYTHING = {"speed", "kind", "wet", "at", "x"}


def read(table):
    rows = table.to_batches()[0]
    return event_columns(rows, EventShape.of(table.schema), EVERYTHING)


def test_every_column_is_an_attribute_of_its_type():
    found = read(
        pa.table(
            {
                "event": [1, 2],
                "topic": ["a", None],
                "speed": [61, None],
                "kind": pa.array(["car", None]).dictionary_encode(),
                "wet": [True, None],
                "at": [dt.date(2026, 3, 1), None],
            }
        )
    )
    assert found.batch.numbers["speed"][0] == 61.0
    assert math.isnan(found.batch.numbers["speed"][1])
    assert found.batch.texts["kind"].codes.tolist() == [0, -1]
    assert found.batch.texts["at"].texts == ("2026-03-01",)
    assert found.batch.flags["wet"].tolist() == [1, -1]
    assert found.topics is not None
    assert found.topics.codes.tolist() == [0, -1]


def test_only_what_subscriptions_look_at_is_read():
    schema = pa.table({"event": [1], "topic": ["a"], "speed": [1.0], "kind": ["car"], "list": [[1]]}).schema
    shape = EventShape.of(schema)
    assert shape.needed({"kind", "other"}) == ["event", "topic", "kind"]
    assert shape.left_out == ("list",)


def test_content_is_read_as_json_and_what_is_none_is_told():
    texts = ['{"x": 1, "y": [2], "z": null}', "[1]", "{", None]
    found = read(pa.table({"origin": ["b"] * 4, "number": range(4), "content": texts, "wanted": [1] * 4}))
    assert found.batch.numbers["x"][0] == 1.0
    assert set(found.unreadable) == {1, 2}
    assert "no JSON object: [1]" in found.unreadable[1]


def test_an_event_without_a_name_cannot_be_read():
    found = read(pa.table({"event": [1, None], "x": [1.0, 2.0]}))
    assert found.unreadable == {1: "nothing in column 'event'"}


def test_a_map_of_attributes_is_read():
    kind = pa.map_(pa.string(), pa.string())
    found = read(pa.table({"id": [7], "attributes": pa.array([[("x", "61"), ("kind", "car")]], kind)}))
    assert found.batch.texts["x"].texts == ("61",)


def test_a_number_that_is_none_is_there_but_matches_nothing():
    assert number_column(pa.array([1.0, math.nan, None])).tolist()[:2] == [1.0, math.inf]
    assert math.isnan(number_column(pa.array([1.0, math.nan, None]))[2])


def test_texts_are_written_once():
    column = text_column(pa.array(["a", "b", "a", None]))
    assert (column.texts, column.codes.tolist()) == (("a", "b"), [0, 1, 0, -1])


def test_events_without_a_name_are_refused_with_the_columns_there_are():
    table = pa.table({"speed": [1.0]})
    with pytest.raises(EventsError, match=r"no column that names an event\nhint: .*--id.*speed"):
        EventShape.of(table.schema)
    with pytest.raises(EventsError, match="no column 'name'"):
        EventShape.of(table.schema, ["name"])
    assert EventShape.of(table.schema, ["speed"]).columns == ()


def test_types_are_told_apart():
    assert is_text(pa.large_string())
    assert is_text(pa.dictionary(pa.int8(), pa.string()))
    assert is_number(pa.decimal128(9, 2))
    assert is_value(pa.timestamp("us"))
    assert not is_value(pa.binary())
    assert is_attribute(True)
    assert not is_attribute([1])
