"""Does each packet get an identifier that no other has at the time?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.mqtt.packet_ids import PACKET_ID_MAX, PacketIds


def test_identifiers_go_round_and_leave_out_what_is_in_use():
    ids = PacketIds(PACKET_ID_MAX - 2)
    assert [ids.next_free({1}, {3: b""}) for _ in range(4)] == [65_534, 65_535, 2, 4]


@pytest.mark.mqtt("MQTT-2.2.1-3", "MQTT-2.2.1-4", "MQTT-4.3.2-1", "MQTT-4.3.3-1")
@given(in_use=st.sets(st.integers(1, PACKET_ID_MAX), max_size=50), last=st.integers(0, PACKET_ID_MAX))
def test_an_identifier_is_a_valid_one_that_is_free(in_use, last):
    found = PacketIds(last).next_free(in_use)
    assert 1 <= found <= PACKET_ID_MAX
    assert found not in in_use


def test_the_last_free_identifier_is_found_and_a_full_table_is_a_bug_of_the_caller():
    in_use = set(range(1, PACKET_ID_MAX + 1)) - {7}
    assert PacketIds(7).next_free(in_use) == 7
    with pytest.raises(AssertionError, match="all packet identifiers"):
        PacketIds().next_free(in_use | {7})
