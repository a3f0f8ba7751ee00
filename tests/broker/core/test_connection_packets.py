"""Does the broker answer each packet of the table as the standard says, however its bytes are cut?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.core.packet_table import ROWS, Code, Row
from tests.broker.talking import new_connection, new_hub
from tests.golden.packets import shown, split

from betimes.broker.core.connection import Connection


def is_as_expected(found: bytes, expected: bytes | Code) -> bool:
    """Tell whether a packet of the broker is the expected one."""
    if isinstance(expected, bytes):
        return found == expected
    if found[0] == 0x20:
        return expected == Code(0x20, found[3], found[2])
    goodbye = mqtt5.read(memoryview(found))[0]
    assert isinstance(goodbye, mqtt5.DisconnectPacket)
    assert goodbye.session_expiry_interval is None  # [MQTT-3.14.2-2]
    return expected == Code(found[0], found[2])


def said(row: Row, size: int) -> tuple[bytes, Connection]:
    """Return what the broker says to the bytes of a row, which come in pieces."""
    connection = new_connection(new_hub())
    connection.receive(row.stage, 0.0) if row.stage else None
    connection.take_outbox()
    for at in range(0, len(row.sends), size):
        connection.receive(row.sends[at : at + size], 0.0)
    return connection.take_outbox(), connection


@pytest.mark.mqtt("MQTT-3.14.2-2")
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_each_packet_of_the_table_is_answered_as_the_standard_says(row):
    for size in (len(row.sends), 1):
        answer, connection = said(row, size)
        packets = list(split(answer))
        assert len(packets) == len(row.answer.packets), shown(answer)
        for found, expected in zip(packets, row.answer.packets, strict=True):
            assert is_as_expected(found, expected), (shown(found), expected)
        assert connection.closing == row.answer.closes


def test_every_row_of_the_table_has_a_name_of_its_own():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
