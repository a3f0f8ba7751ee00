"""Does each row become one event, as it says, however often it is written?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import mqtt5
import pyarrow as pa
import pytest
from tests.client.blocking.test_ranges import keeping_broker
from tests.interop.brokers import Broker
from tests.pipeline.schemas import schema_of

from betimes.model.errors import SettingError
from betimes.pipeline.streams.options import SinkOptions, read_sink_options
from betimes.pipeline.streams.sink import check_rows, events, publish_rows


def options(**more: str) -> SinkOptions:
    return read_sink_options({"url": "mqtt://127.0.0.1:1", **more})


def batches(*rows: dict[str, Any], **types: pa.DataType) -> Iterator[pa.RecordBatch]:
    columns = {name: pa.array([row.get(name) for row in rows], types.get(name)) for name in rows[0]}
    return iter([pa.RecordBatch.from_pydict(columns)])


def published(*rows: dict[str, Any], scope: str = "q:1:0", **more: str) -> list[mqtt5.PublishPacket]:
    return list(events(batches(*rows), options(**more), scope))


def test_columns_say_what_they_are_called_and_others_are_attributes():
    row = {
        "topic": "t",
        "payload": "x",
        "deadline": "10s",
        "importance": 3,
        "key": "k",
        "speed": 61.5,
        "on": True,
    }
    (packet,) = published(row)
    assert (packet.topic, packet.payload) == ("t", b"x")
    assert packet.user_properties == [
        ("speed", "61.5"),
        ("on", "true"),
        ("$deadline", "10s"),
        ("$importance", "3"),
        ("$key", "k"),
    ]


def test_options_hold_where_a_row_does_not_say():
    first, second = published(
        {"topic": None, "deadline": None}, {"topic": "u", "deadline": 2.5}, topic="t", deadline="9s"
    )
    assert (first.topic, dict(first.user_properties)["$deadline"]) == ("t", "9s")
    assert (second.topic, dict(second.user_properties)["$deadline"]) == ("u", "2.5s")


def test_decimals_and_whole_seconds_are_numbers():
    schema = schema_of("topic string, deadline int, price decimal(10,2)")
    check_rows(schema, options())
    (packet,) = published({"topic": "t", "deadline": 3, "price": Decimal("12.50")})
    assert packet.user_properties[:2] == [("price", "12.5"), ("$deadline", "3s")]


def test_what_the_source_gives_is_passed_on_but_for_what_it_was_there():
    kind = pa.map_(pa.string(), pa.string())
    row = {"topic": "t", "attributes": [("speed", "61")], "id": "b1:7", "age_s": 0.5}
    (packet,) = events(batches(row, attributes=kind), options(), "q:1:0")
    assert packet.user_properties[0] == ("speed", "61")
    assert [name for name, _ in packet.user_properties] == ["speed", "$key"]


def keys(*rows: dict[str, Any], scope: str = "q:1:0") -> list[str]:
    return [dict(packet.user_properties)["$key"] for packet in published(*rows, scope=scope)]


def test_rows_that_are_written_again_have_the_same_keys_in_whatever_order():
    rows = [{"topic": "t", "speed": number, "age_s": 0.1} for number in (1, 2, 2, 3)]
    again = [{**row, "age_s": 7.0} for row in reversed(rows)]
    assert sorted(keys(*rows)) == sorted(keys(*again))
    assert len(set(keys(*rows))) == 4
    assert not set(keys(*rows)) & set(keys(*rows, scope="q:2:0"))


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("speed double", "topic = None"),
        ("topic string, key bigint", "key = 'bigint'"),
        ("topic string, at timestamp", "at = 'timestamp'"),
        ("topic string, payload double", "string or binary"),
    ],
)
def test_rows_that_cannot_be_published_are_told_before_any_is(ddl, said):
    with pytest.raises(SettingError, match=said):
        check_rows(schema_of(ddl), options())


def test_a_row_without_a_topic_is_an_error():
    with pytest.raises(SettingError, match="a row has none"):
        published({"topic": None, "speed": 1})


def rows_of(broker: Broker) -> list[bytes]:
    assert broker.hub.replay is not None
    return [each.packet.payload for each in broker.hub.replay.missed("#", {})[0]]


@pytest.mark.live
def test_a_task_that_is_tried_again_adds_nothing():
    with keeping_broker() as broker:
        there = options(url=f"mqtt://127.0.0.1:{broker.port}", topic="t")
        rows = [{"payload": str(number)} for number in range(100)]
        for some in (rows[:40], rows, rows[::-1]):
            assert publish_rows(batches(*some), there, "q:1:0").rows == len(some)
        assert len(rows_of(broker)) == 100
        publish_rows(batches(*rows), there, "q:2:0")
        assert len(rows_of(broker)) == 200


@pytest.mark.live
def test_a_task_that_dies_half_way_and_its_second_attempt_publish_each_row_once():
    with keeping_broker() as broker:
        there = options(url=f"mqtt://127.0.0.1:{broker.port}", topic="t", in_flight="10")
        rows = [{"payload": str(number)} for number in range(100)]

        def dies() -> Iterator[pa.RecordBatch]:
            yield from batches(*rows[:50])
            raise OSError("the executor is gone")

        with pytest.raises(OSError, match="executor"):
            publish_rows(dies(), there, "q:1:0")
        assert 0 < len(rows_of(broker)) <= 50
        publish_rows(batches(*rows), there, "q:1:0")
        assert sorted(map(int, rows_of(broker))) == list(range(100))


@pytest.mark.live
def test_a_speculative_attempt_beside_the_first_one_adds_nothing():
    with keeping_broker() as broker:
        there = options(url=f"mqtt://127.0.0.1:{broker.port}", topic="t", in_flight="10")
        rows = [{"payload": str(number)} for number in range(500)]
        attempts = [
            threading.Thread(target=lambda: publish_rows(batches(*rows), there, "q:1:0")) for _ in range(2)
        ]
        for each in attempts:
            each.start()
        for each in attempts:
            each.join(60.0)
        assert sorted(map(int, rows_of(broker))) == list(range(500))
