"""Is a message that is copied with its id and age the one that would have been written?"""

from __future__ import annotations

import mqtt5
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.delivery.publication import Publication
from betimes.mqtt.packet_scan import Bytes, Places, walk
from betimes.mqtt.packet_writer import told_packets, warm_up

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
qualities = st.sampled_from([(mqtt5.QoS.AT_MOST_ONCE, None), (mqtt5.QoS.AT_LEAST_ONCE, 7)])
packets = st.builds(
    lambda topic, payload, quality, **options: mqtt5.PublishPacket(
        topic, payload, qos=quality[0], packet_id=quality[1], **options
    ),
    st.text("ab/", min_size=1, max_size=200),
    st.binary(max_size=300),
    qualities,
    retain=st.booleans(),
    content_type=st.none() | st.just("application/json"),
    message_expiry_interval=st.none() | st.integers(1, 2**32 - 1),
    payload_format_indicator=st.sampled_from([0, 1]),
    response_topic=st.none() | st.just("answers/here"),
    correlation_data=st.none() | st.binary(max_size=5),
    user_properties=st.lists(st.tuples(texts, texts), max_size=6),
)
messages = st.lists(
    st.tuples(packets, st.integers(0, 1), st.integers(0, 2**62), st.integers(0, 10**8)), min_size=1
)
ORIGINS = ("b1", "the broker in Genève")


def laid_end_to_end(parts: list[bytes]) -> tuple[Bytes, Places]:
    edges = np.concatenate(([0], np.cumsum([len(each) for each in parts], dtype=np.int64)))
    return np.frombuffer(bytearray(b"".join(parts)), np.uint8), edges


@given(messages, st.data())
def test_what_is_copied_is_what_would_be_written(published, data):
    wanted = data.draw(st.lists(st.integers(0, len(published) - 1), unique=True))
    numbers = np.array([number for _, _, number, _ in published])
    ages_ms = np.array([age_ms for _, _, _, age_ms in published])
    codes = np.array([code for _, code, _, _ in published])
    expiries = [packet.message_expiry_interval or 0 for packet, _, _, _ in published]
    left_s = np.maximum(np.ceil(np.array(expiries) - ages_ms / 1000.0), 1.0).astype(np.int64)
    packets_data, edges = laid_end_to_end([packet.write() for packet, _, _, _ in published])
    parts = walk(packets_data, edges[:1], np.array([len(published)]))
    assert parts.starts.tolist() == edges[:-1].tolist()
    written, longest = told_packets(
        packets_data,
        parts,
        np.array(wanted, dtype=np.int64),
        (*laid_end_to_end([each.encode() for each in ORIGINS]), codes),
        (numbers, ages_ms, left_s),
    )
    one_by_one = []
    for place in wanted:
        packet, code, number, age_ms = published[place]
        publication = Publication(packet, packet.topic, born_s=0.0, origin=ORIGINS[code], number=number)
        told = publication.packet_for(qos=0, retain=False, now_s=age_ms / 1000.0, told=True)
        one_by_one.append(told.write())
    if all(name not in ("$id", "$age") for each, *_ in published for name, _ in each.user_properties):
        assert written == b"".join(one_by_one)
        assert longest == max(map(len, one_by_one), default=0)


def test_warming_up_writes_nothing():
    warm_up()
