"""Does a client of MQTT 3.1.1 mean the same packets, and hear only what its version has?

The packets of 3.1.1 are written and read here by hand, from the text of its standard.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.mqtt import mqtt311 as mqtt3
from betimes.mqtt.codec import Codec
from betimes.mqtt.validation import (
    CLIENT_ID_NOT_VALID,
    MALFORMED,
    PROTOCOL_ERROR,
    TOPIC_NAME_INVALID,
    PacketError,
)

QOS = [mqtt5.QoS(level) for level in range(3)]
CONNACK = mqtt5.ConnAckReasonCode
SUBACK = mqtt5.SubAckReasonCode

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
topics = st.text(st.characters(codec="utf-8", exclude_characters="\0#+"), min_size=1, max_size=12)
payloads = st.binary(max_size=300) | st.just(bytes(20_000))
packet_ids = st.integers(1, 65535)


def raw(first: int, *parts: bytes) -> bytes:
    body, digits = b"".join(parts), b""
    length = len(body)
    while length > 127:
        digits += bytes([length % 128 + 128])
        length //= 128
    return bytes([first]) + digits + bytes([length]) + body


def text(characters: str | bytes) -> bytes:
    data = characters.encode() if isinstance(characters, str) else characters
    return len(data).to_bytes(2, "big") + data


def short(value: int) -> bytes:
    return value.to_bytes(2, "big")


def connect(*rest: bytes, flags: int = 2, name: str = "MQTT", level: int = 4) -> bytes:
    return raw(0x10, text(name), bytes([level, flags]), short(60), *(rest or (text("c"),)))


def opened() -> Codec:
    wire = Codec()
    assert len(wire.feed(connect())) == 1
    assert wire.version == 4
    return wire


def only(data: bytes) -> Any:
    """Return the one packet that an open connection reads."""
    (packet,) = opened().feed(data)
    return packet


def refusal(wire: Codec, data: bytes) -> PacketError:
    with pytest.raises(PacketError) as caught:
        wire.feed(data)
    return caught.value


@given(
    texts, st.none() | texts, st.binary(max_size=9), st.none() | st.tuples(topics, payloads), st.booleans()
)
def test_a_connect_means_what_it_says(client_id, username, password, will, retain):
    flags, rest = 0x02, text(client_id)
    if will is not None:
        flags |= 0x04 | 2 << 3 | retain << 5
        rest += text(will[0]) + text(will[1])
    if username is not None:
        flags |= 0xC0
        rest += text(username) + text(password)
    (packet,) = Codec().feed(connect(rest, flags=flags))
    assert packet == mqtt5.ConnectPacket(
        client_id,
        username=username,
        password=None if username is None else password,
        clean_start=True,
        keep_alive=60,
        will=will and mqtt5.Will(will[0], payload=will[1], qos=QOS[2], retain=retain),
    )


def test_a_session_that_is_not_clean_never_expires():
    (packet,) = Codec().feed(connect(flags=0))
    assert packet == mqtt5.ConnectPacket(
        "c", clean_start=False, keep_alive=60, session_expiry_interval=0xFFFFFFFF
    )


@pytest.mark.mqtt311("MQTT-3.1.3-7", "MQTT-3.1.3-8")
def test_nobody_can_keep_a_session_without_a_client_id():
    wire = Codec()
    assert refusal(wire, connect(text(""), flags=0)).reason_code == CLIENT_ID_NOT_VALID
    assert wire.encode(mqtt5.ConnAckPacket(reason_code=CONNACK.CLIENT_ID_NOT_VALID)) == b"\x20\x02\x00\x02"
    assert len(Codec().feed(connect(text(""), flags=2))) == 1


@given(topics, payloads, st.sampled_from(QOS), st.booleans(), packet_ids)
def test_a_publish_is_the_same_both_ways(topic, payload, qos, retain, packet_id):
    level = qos.value
    data = raw(0x30 | level << 1 | retain, text(topic), short(packet_id) if level else b"", payload)
    packet = only(data)
    assert packet == mqtt5.PublishPacket(
        topic, payload, qos=qos, retain=retain, packet_id=packet_id if level else None
    )
    assert opened().encode(packet) == data == mqtt3.written(packet)


def test_a_publish_sent_again_says_so():
    data = raw(0x3A, text("a"), short(7), b"x")
    assert only(data).duplicate
    assert mqtt3.written(only(data)) == data


def test_properties_of_what_is_sent_are_left_out():
    packet = mqtt5.PublishPacket(
        "a", b"x", user_properties=[("speed", "61")], content_type="t", subscription_ids=[3]
    )
    assert mqtt3.written(packet) == raw(0x30, text("a"), b"x")


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (mqtt5.PubAckPacket, 0x40),
        (mqtt5.PubRecPacket, 0x50),
        (mqtt5.PubRelPacket, 0x62),
        (mqtt5.PubCompPacket, 0x70),
    ],
)
def test_acknowledgements_are_a_packet_identifier_both_ways(kind, first):
    data = raw(first, short(513))
    assert only(data) == kind(513)
    assert mqtt3.written(kind(513, reason_str="why")) == data
    assert refusal(opened(), raw(first, short(513), b"\0")).reason_code == MALFORMED
    assert refusal(opened(), raw(first, short(0))).reason_code == PROTOCOL_ERROR


@given(packet_ids, st.lists(st.tuples(topics, st.sampled_from(QOS)), min_size=1, max_size=4))
def test_a_subscription_has_a_qos_and_no_other_option(packet_id, wanted):
    packet = only(raw(0x82, short(packet_id), *(text(each) + bytes([qos.value]) for each, qos in wanted)))
    assert packet == mqtt5.SubscribePacket(
        packet_id,
        [mqtt5.TopicFilter(each, max_qos=qos, retain_as_published=False) for each, qos in wanted],
    )


@given(packet_ids, st.lists(topics, min_size=1, max_size=4))
def test_an_unsubscription_names_its_filters(packet_id, patterns):
    packet = only(raw(0xA2, short(packet_id), *map(text, patterns)))
    assert packet == mqtt5.UnsubscribePacket(packet_id, patterns)


def test_pings_and_goodbyes_are_empty():
    assert only(b"\xc0\x00") == mqtt5.PingReqPacket()
    assert only(b"\xe0\x00") == mqtt5.DisconnectPacket()
    assert mqtt3.written(mqtt5.PingRespPacket()) == b"\xd0\x00"


@pytest.mark.mqtt311("MQTT-3.9.3-2")
def test_answers_to_subscriptions_have_the_codes_of_3_1_1():
    codes = [SUBACK(0), SUBACK(1), SUBACK(2), SUBACK.NOT_AUTHORIZED, SUBACK.QUOTA_EXCEEDED]
    assert mqtt3.written(mqtt5.SubAckPacket(9, codes, reason_str="no")) == raw(
        0x90, short(9), b"\x00\x01\x02\x80\x80"
    )
    many = mqtt5.SubAckPacket(9, codes[:1] * 200)
    assert mqtt3.written(many) == raw(0x90, short(9), bytes(200))
    unsubscribed = mqtt5.UnsubAckPacket(9, [mqtt5.UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED])
    assert mqtt3.written(unsubscribed) == raw(0xB0, short(9))


@pytest.mark.mqtt311("MQTT-3.2.2-4", "MQTT-3.2.2-6")
@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (CONNACK.SUCCESS, b"\x20\x02\x01\x00"),
        (CONNACK.UNSUPPORTED_PROTOCOL_VERSION, b"\x20\x02\x00\x01"),
        (CONNACK.CLIENT_ID_NOT_VALID, b"\x20\x02\x00\x02"),
        (CONNACK.SERVER_BUSY, b"\x20\x02\x00\x03"),
        (CONNACK.BAD_USER_NAME_OR_PASSWORD, b"\x20\x02\x00\x04"),
        (CONNACK.NOT_AUTHORIZED, b"\x20\x02\x00\x05"),
        (CONNACK.MALFORMED_PACKET, b""),
    ],
)
def test_an_answer_to_connect_has_the_nearest_code_or_is_not_given(code, answer):
    assert mqtt3.written(mqtt5.ConnAckPacket(session_present=True, reason_code=code)) == answer


def test_every_return_code_answers_a_reason_code_of_version_5():
    assert all(CONNACK(code).value == code for code in mqtt3.RETURN_CODES)


def test_a_server_says_no_goodbye():
    assert mqtt3.written(mqtt5.DisconnectPacket()) == b""
    assert opened().encode(mqtt5.DisconnectPacket()) == b""


def test_what_only_clients_send_is_not_written():
    with pytest.raises(AssertionError):
        mqtt3.written(mqtt5.PingReqPacket())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (raw(0x30, b"\0"), MALFORMED),  # half a topic
        (raw(0x30, b"\0\5ab"), MALFORMED),
        (raw(0x30, text("")), PROTOCOL_ERROR),
        (raw(0x30, text("a/#")), TOPIC_NAME_INVALID),
        (raw(0x30, text(b"\xff")), MALFORMED),
        (raw(0x32, text("a")), MALFORMED),
        (raw(0x32, text("a"), short(0)), PROTOCOL_ERROR),
        (raw(0x82, short(1), text("a"), b"\x03"), MALFORMED),
        (raw(0x82, short(1), text("a"), b"\x04"), MALFORMED),  # no-local came with version 5
        (raw(0x82, short(1), text("a")), MALFORMED),
        (raw(0x82, short(1)), PROTOCOL_ERROR),
        (raw(0x82, b"\1"), MALFORMED),
        (raw(0xA2, short(1)), PROTOCOL_ERROR),
        (raw(0xA2, short(1), b"\0\2a"), MALFORMED),
        (raw(0xC0, b"\0"), MALFORMED),
        (raw(0xE0, b"\0"), MALFORMED),
        (raw(0xF0, b"\x18", b"\4\x15", text("m")), MALFORMED),
        (connect(), PROTOCOL_ERROR),
    ],
)
def test_what_3_1_1_forbids_is_refused(data, code):
    assert refusal(opened(), data).reason_code == code


@pytest.mark.parametrize(
    "data",
    [
        connect(text("c"), text("secret"), flags=0x42),  # a password of nobody
        connect(flags=0x03),
        connect(text("c") + b"\0"),
        connect(b"\0"),
        connect(text("c"), text("w"), flags=0x06),
        raw(0x10, text("MQTT"), b"\x04"),
    ],
)
def test_a_connect_that_3_1_1_forbids_is_refused(data):
    assert refusal(Codec(), data).reason_code == MALFORMED


def test_a_client_of_3_1_is_served_as_one_of_3_1_1_is():
    for flags, rest in ((2, (text("c"),)), (0, (text("c"),)), (0xC6, (text("c"), *map(text, "wpup")))):
        old, new = Codec(), Codec()
        assert old.feed(connect(*rest, flags=flags, name="MQIsdp", level=3)) == new.feed(
            connect(*rest, flags=flags)
        )
        assert old.version == new.version == 4
        data = raw(0x32, text("a"), short(7), b"x")
        assert old.feed(data) == new.feed(data) != []


def test_a_client_of_3_1_may_have_a_long_client_id():
    (packet,) = Codec().feed(connect(text("c" * 24), name="MQIsdp", level=3))
    assert isinstance(packet, mqtt5.ConnectPacket)
    assert packet.client_id == "c" * 24


def test_versions_that_are_not_known_are_refused_in_the_form_that_is_closest():
    unsupported = mqtt5.ConnAckPacket(reason_code=CONNACK.UNSUPPORTED_PROTOCOL_VERSION)
    old, new = b"\x20\x02\x00\x01", b"\x20\x03\x00\x84\x00"
    for name, level, answer in (
        ("MQIsdp", 4, old),
        ("MQIsdp", 0x83, old),
        ("MQTT", 3, old),
        ("MQTT", 0x84, old),
        ("MQTT", 6, new),
        ("mqtt", 5, new),
    ):
        wire = Codec()
        assert refusal(wire, connect(name=name, level=level)).reason_code == 0x84
        assert wire.encode(unsupported) == answer


LOGIN = connect(text("c"), text("w"), text("p"), text("u"), text("p"), flags=0xC6)
SAMPLES = [
    LOGIN,
    LOGIN + raw(0x32, text("a"), short(1), b"x"),
    LOGIN + raw(0x82, short(1), text("a"), b"\1"),
    LOGIN + raw(0xA2, short(1), text("a"), text("b")),
]


@pytest.mark.parametrize("data", SAMPLES)
def test_no_truncated_packet_is_a_packet_or_an_error(data):
    for length in range(len(data)):
        assert len(Codec().feed(data[:length])) == (length >= len(LOGIN))
    assert len(Codec().feed(data)) == 1 + (len(data) > len(LOGIN))


@pytest.mark.parametrize("data", SAMPLES)
def test_mutated_bytes_are_packets_or_a_wire_error_and_nothing_else(data):
    chance = random.Random(f"mutations of {data.hex()}")
    for _ in range(1000):
        mutant = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(mutant))
            mutant[at : at + chance.randrange(2)] = chance.randbytes(chance.randrange(2))
        with contextlib.suppress(PacketError):
            Codec().feed(bytes(mutant))


def test_lengths_are_written_in_seven_bits_a_byte():
    assert [mqtt3.written_length(each) for each in (0, 127, 128, 16_383, 16_384, 268_435_455)] == [
        b"\x00",
        b"\x7f",
        b"\x80\x01",
        b"\xff\x7f",
        b"\x80\x80\x01",
        b"\xff\xff\xff\x7f",
    ]
