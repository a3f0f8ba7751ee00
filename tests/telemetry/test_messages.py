"""Do records come out of a message as they went in, and is what is none told apart?"""

from __future__ import annotations

import doctest

import pytest
from tests.pipeline.records import record

from betimes.model.telemetry import Published, Subscribed
from betimes.telemetry import messages
from betimes.telemetry.files import KINDS, table_schema
from betimes.telemetry.messages import (
    TelemetryMessageError,
    packed_records,
    read_telemetry,
    read_topic,
    telemetry_topic,
)


@pytest.mark.parametrize(("kind", "made"), [("published", Published), ("subscribed", Subscribed)])
def test_records_come_out_as_they_went_in(kind, made):
    records = [record(made, time_s=float(number)) for number in range(3)]
    topic = telemetry_topic("b/1", kind)
    rows = read_telemetry(topic, packed_records(kind, records))
    assert (*read_topic(topic), rows.schema) == ("b/1", kind, table_schema(kind))
    assert [KINDS[kind](**row) for row in rows.to_pylist()] == records


def test_what_is_no_telemetry_is_told():
    payload = packed_records("published", [record(Published)])
    for topic in ("$betimes/telemetry/b", "$betimes/telemetry/b/other", "telemetry/x/b/published"):
        with pytest.raises(TelemetryMessageError, match="no topic of telemetry"):
            read_topic(topic)
    topic = telemetry_topic("b", "published")
    for broken in (b"", b"nonsense", payload[:100]):
        with pytest.raises(TelemetryMessageError, match="no whole Arrow stream"):
            read_telemetry(topic, broken)
    with pytest.raises(TelemetryMessageError, match="another version"):
        read_telemetry(telemetry_topic("b", "sent"), payload)


def test_a_name_keeps_its_level():
    assert doctest.testmod(messages).failed == 0
