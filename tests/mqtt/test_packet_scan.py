"""Is everything where the packets have it?"""

from __future__ import annotations

import mqtt5
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.mqtt.packet_scan import after_property, after_text, length_at, walk

words = st.text("abç", min_size=1, max_size=150)
packets = st.builds(
    mqtt5.PublishPacket,
    words,
    st.binary(max_size=200),
    message_expiry_interval=st.none() | st.integers(0, 2**32 - 1),
    content_type=st.none() | words,
    response_topic=st.none() | words,
    correlation_data=st.none() | st.binary(max_size=9),
    topic_alias=st.none() | st.integers(1, 9),
    user_properties=st.lists(st.tuples(words, words), max_size=4),
)


@pytest.mark.long
@given(st.lists(st.lists(packets, max_size=5), max_size=4))
def test_the_parts_of_all_packets_are_found(runs):
    pieces = [b"".join(each.write() for each in run) + b"\x30\x7f" for run in runs]  # another one begins
    data = b"".join(pieces)
    starts = np.cumsum([0, *map(len, pieces)])[:-1].astype(np.int64)
    counts = np.array([len(run) for run in runs], dtype=np.int64)
    parts = walk(np.frombuffer(bytearray(data), np.uint8), starts, counts)
    whole = [each for run in runs for each in run]
    for place, packet in enumerate(whole):
        assert data[parts.starts[place] : parts.ends[place]] == packet.write()
        assert data[parts.topics[place] : parts.topic_ends[place]].decode() == packet.topic
        assert data[parts.property_ends[place] : parts.ends[place]] == packet.payload
        assert parts.read_by[place] == (packet.content_type is not None)
        at = parts.expiries[place]
        expiry_s = None if at < 0 else int.from_bytes(data[at : at + 4], "big")
        assert expiry_s == packet.message_expiry_interval
    pairs = [(place, *pair) for place, packet in enumerate(whole) for pair in packet.user_properties]
    found = []
    for owner, start, end in zip(parts.owners, parts.user_starts, parts.user_ends, strict=True):
        pair = data[start:end]
        middle = 2 + int.from_bytes(pair[:2], "big")
        found.append((owner, pair[2:middle].decode(), pair[middle + 2 :].decode()))
    assert found == pairs


def test_lengths_texts_and_properties_end_where_they_do():
    data = np.frombuffer(bytearray(b"\x80\x01\x26\x00\x01a\x00\x02bc"), np.uint8)
    assert length_at(data, 0) == (128, 2)
    assert after_text(data, 3) == 6
    assert after_property(data, 2) == 10
