"""Do messages become the rows that a schema asks for, and nothing where they have no such thing?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import mqtt5
import pyarrow as pa
import pytest
from tests.pipeline.schemas import schema_of

from betimes.client.blocking.ranges import RangePart
from betimes.model.errors import SettingError
from betimes.pipeline.streams.rows import HEADERS, ROWS_PER_BATCH, SCHEMA, batches, check_schema


def rows(ddl: str, *packets: mqtt5.PublishPacket) -> list[dict[str, Any]]:
    schema = schema_of(ddl)
    check_schema(schema)
    made = batches([RangePart(packets=list(packets), came_at_s=1_000_000.0)], schema)
    return [row for batch in made for row in batch.to_pylist()]


def message(*properties: tuple[str, str], payload: bytes = b"x", **more: Any) -> mqtt5.PublishPacket:
    return mqtt5.PublishPacket("t", payload, user_properties=list(properties), **more)


def test_all_that_is_known_of_a_message_is_in_its_row():
    found = rows(SCHEMA, message(("speed", "61"), ("$id", "b1:7"), ("$age", "1500"), ("$deadline", "9s")))
    assert found == [
        {
            "topic": "t",
            "payload": b"x",
            "id": "b1:7",
            "attributes": [("speed", "61")],
            "age_s": 1.5,
            "published": datetime.fromtimestamp(999_998.5, tz=UTC),
        }
    ]


def test_the_time_of_publication_is_the_one_that_the_broker_recorded():
    told = message(("$age", "1500"), ("$published", "999997000000"))
    assert rows("published timestamp", told) == [{"published": datetime.fromtimestamp(999_997, tz=UTC)}]
    assert rows("published timestamp", message(("$age", "1500"), ("$published", "soon"))) == [
        {"published": datetime.fromtimestamp(999_998.5, tz=UTC)}
    ]


def test_headers_are_the_user_properties_of_the_publisher_in_order():
    found = rows(HEADERS, message(("b", "1"), ("a", "x"), ("b", "2"), ("$id", "b1:7")))
    assert found == [
        {"headers": [{"key": key, "value": value} for key, value in (("b", b"1"), ("a", b"x"), ("b", b"2"))]}
    ]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("double", "61", 61.0),
        ("double", "fast", None),
        ("float", "0.5", 0.5),
        ("bigint", "9007199254740993", 9007199254740993),
        ("bigint", "61.0", 61),
        ("bigint", "61.5", None),
        ("bigint", "9" * 30, None),
        ("int", "3000000000", None),
        ("smallint", "-7", -7),
        ("boolean", "true", True),
        ("boolean", "yes", None),
        ("string", "61", "61"),
    ],
)
def test_a_column_of_another_name_is_an_attribute_in_its_type(kind, text, value):
    assert rows(f"speed {kind}, topic string", message(("speed", text))) == [{"speed": value, "topic": "t"}]


def test_what_a_message_does_not_have_is_nothing():
    assert rows("speed double, id string, age_s double", message()) == [
        {"speed": None, "id": None, "age_s": None}
    ]
    assert rows("age_s double", message(("$age", "soon"))) == [{"age_s": None}]


def test_numbers_texts_and_flags_at_the_top_of_json_are_attributes():
    packet = message(
        payload=b'{"speed": 61, "kind": "car", "on": true, "deep": {}}', content_type="application/json"
    )
    assert rows("speed double, kind string, on boolean, deep string", packet) == [
        {"speed": 61.0, "kind": "car", "on": True, "deep": None}
    ]


def test_parts_are_put_together_to_batches_of_some_size():
    part = RangePart(packets=[message()] * (ROWS_PER_BATCH // 2))
    made = list(batches([part] * 5, schema_of("topic string")))
    assert [batch.num_rows for batch in made] == [ROWS_PER_BATCH, ROWS_PER_BATCH, ROWS_PER_BATCH // 2]
    assert all(isinstance(batch, pa.RecordBatch) for batch in made)


@pytest.mark.parametrize("ddl", ["payload string", "speed array<int>", "at timestamp"])
def test_what_cannot_be_read_so_is_named(ddl):
    with pytest.raises(SettingError, match=ddl.partition(" ")[0]):
        check_schema(schema_of(ddl))
