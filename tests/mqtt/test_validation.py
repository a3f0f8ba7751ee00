"""Are the parts of a packet refused that no peer may send?"""

from __future__ import annotations

import pytest

from betimes.mqtt.validation import (
    MALFORMED,
    PROTOCOL_ERROR,
    TOPIC_NAME_INVALID,
    PacketError,
    are_plain,
    check_packet_id,
    check_properties,
    check_topic,
    number_at,
)


@pytest.mark.parametrize(
    ("data", "value", "end"),
    [(b"\x00", 0, 1), (b"\x7f", 127, 1), (b"\x80\x01", 128, 2), (b"\xff\xff\xff\x7f", 268_435_455, 4)],
)
def test_a_length_is_read_with_where_it_ends(data, value, end):
    assert number_at(data + b"rest", 0, len(data)) == (value, end)
    assert number_at(data[:-1], 0, len(data) - 1)[0] == -1


@pytest.mark.parametrize("data", [b"\x80\x00", b"\xff\xff\xff\xff\x01"])
def test_a_length_in_more_bytes_than_it_needs_is_refused(data):
    with pytest.raises(PacketError) as caught:
        number_at(data, 0, len(data))
    assert caught.value.reason_code == MALFORMED


def test_a_topic_has_no_wildcards():
    check_topic("straße/1".encode())
    with pytest.raises(PacketError) as caught:
        check_topic(b"a/+")
    assert caught.value.reason_code == TOPIC_NAME_INVALID


def test_packet_identifiers_are_there_and_not_0():
    check_packet_id(b"\x00\x01", 0, 2)
    for data, code in ((b"\x00", MALFORMED), (b"\x00\x00", PROTOCOL_ERROR)):
        with pytest.raises(PacketError) as caught:
            check_packet_id(data, 0, len(data))
        assert caught.value.reason_code == code


def test_user_properties_in_ascii_need_no_full_walk():
    pair = b"\x26\x00\x01a\x00\x02bc"
    assert are_plain(pair * 2)
    assert not are_plain(pair + b"\x01\x00")
    assert not are_plain(pair[:-1])
    assert check_properties(bytes([len(pair)]) + pair, 0, len(pair) + 1) == len(pair) + 1
