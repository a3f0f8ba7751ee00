"""Does a wire find the packets in any bytes, and refuse what the standard forbids with the right code?"""

from __future__ import annotations

import random
from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.mqtt.codec import CONNECT_BYTES_MAX, Codec, Packet, _are_from_server
from betimes.mqtt.validation import PacketError, check_properties

# Reason codes, as the standard numbers them.
MALFORMED, ILLEGAL, UNSUPPORTED, BAD_TOPIC, BAD_ALIAS, TOO_LARGE = 0x81, 0x82, 0x84, 0x90, 0x94, 0x95

CONNECT = mqtt5.ConnectPacket("c", clean_start=True)
PING = b"\xc0\x00"
QOS = [mqtt5.QoS(level) for level in range(3)]
RETAIN_HANDLING = [mqtt5.RetainHandling(each) for each in range(3)]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
topics = st.text(st.characters(codec="utf-8", exclude_characters="\0#+"), min_size=1, max_size=12)
patterns = st.sampled_from(["a", "a/+/b", "#", "$share/g/a", "ä/€"])
payloads = st.binary(max_size=300)
user_properties = st.lists(st.tuples(texts, texts), max_size=4)
packet_ids = st.integers(1, 65535)
seconds = st.none() | st.integers(0, 2**32 - 1)
optional_binary = st.none() | st.binary(max_size=9)
messages: dict[str, Any] = {
    "retain": st.booleans(),
    "payload_format_indicator": st.integers(0, 1),
    "message_expiry_interval": seconds,
    "content_type": st.none() | texts,
    "response_topic": st.none() | topics,
    "correlation_data": optional_binary,
    "user_properties": user_properties,
}
wills = st.builds(mqtt5.Will, topics, payload=payloads, qos=st.sampled_from(QOS), **messages)
connects = st.builds(
    mqtt5.ConnectPacket,
    texts,
    username=st.none() | texts,
    password=optional_binary,
    clean_start=st.booleans(),
    will=st.none() | wills,
    session_expiry_interval=st.integers(0, 2**32 - 1),
    authentication_method=texts,
    authentication_data=optional_binary,
    receive_max=st.integers(1, 65535),
    user_properties=user_properties,
)


@st.composite
def publishes(draw: st.DrawFn) -> mqtt5.PublishPacket:
    qos = draw(st.sampled_from(QOS))
    has_id = qos.value > 0
    alias = draw(st.none() | st.integers(1, 65535))
    return mqtt5.PublishPacket(
        draw(topics) if alias is None else draw(topics | st.just("")),
        draw(payloads),
        qos=qos,
        packet_id=draw(packet_ids) if has_id else None,
        duplicate=draw(st.booleans()) if has_id else False,
        topic_alias=alias,
        **{name: draw(values) for name, values in messages.items()},
    )


filters = st.builds(
    mqtt5.TopicFilter,
    patterns,
    max_qos=st.sampled_from(QOS),
    retain_as_published=st.booleans(),
    retain_handling=st.sampled_from(RETAIN_HANDLING),
)
kinds: list[Any] = [mqtt5.PubAckPacket, mqtt5.PubRecPacket, mqtt5.PubRelPacket, mqtt5.PubCompPacket]
acknowledgements = st.sampled_from(kinds).flatmap(
    lambda kind: st.builds(kind, packet_ids, reason_str=texts, user_properties=user_properties)
)
subscribes = st.builds(
    mqtt5.SubscribePacket,
    packet_ids,
    st.lists(filters, min_size=1, max_size=4),
    subscription_id=st.none() | st.integers(1, 268_435_455),
    user_properties=user_properties,
)
packets_of_clients: st.SearchStrategy[Any] = st.one_of(
    publishes(),
    acknowledgements,
    subscribes,
    st.builds(mqtt5.UnsubscribePacket, packet_ids, st.lists(patterns, min_size=1, max_size=4)),
    st.builds(mqtt5.PingReqPacket),
    st.builds(mqtt5.DisconnectPacket, session_expiry_interval=seconds, user_properties=user_properties),
    st.builds(mqtt5.AuthPacket, authentication_method=texts, authentication_data=optional_binary),
)


def number(value: int) -> bytes:
    digits = b""
    while value > 127:
        digits += bytes([value % 128 + 128])
        value //= 128
    return digits + bytes([value])


def raw(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes([first]) + number(len(body)) + body


def text(characters: bytes | str) -> bytes:
    data = characters.encode() if isinstance(characters, str) else characters
    return len(data).to_bytes(2, "big") + data


def properties(*each: bytes) -> bytes:
    data = b"".join(each)
    return number(len(data)) + data


def publish(
    topic: bytes | str = "a", props: bytes = b"\0", *, first: int = 0x30, packet_id: bytes = b""
) -> bytes:
    return raw(first, text(topic), packet_id, props, b"payload")


def subscribe(filters: bytes = text("a") + b"\0", props: bytes = b"\0", packet_id: bytes = b"\0\1") -> bytes:
    return raw(0x82, packet_id, props, filters)


def unsubscribe(filters: bytes = text("a"), props: bytes = b"\0", packet_id: bytes = b"\0\1") -> bytes:
    return raw(0xA2, packet_id, props, filters)


def connect(
    *, name: str = "MQTT", level: int = 5, flags: int = 2, props: bytes = b"\0", rest: bytes = text("c")
) -> bytes:
    return raw(0x10, text(name), bytes([level, flags]), b"\0\x3c", props, rest)


def opened(**settings: Any) -> Codec:
    wire = Codec(**settings)
    assert wire.feed(CONNECT.write()) == [CONNECT]
    return wire


def refusal(wire: Codec, data: bytes) -> PacketError:
    with pytest.raises(PacketError) as caught:
        wire.feed(data)
    return caught.value


@given(connects, st.lists(packets_of_clients, max_size=6), st.data())
def test_packets_come_out_as_they_went_in_however_they_are_cut(first, others, data):
    sent: list[Packet] = [first, *others]
    stream = b"".join(packet.write() for packet in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    wire = Codec()
    found: list[Any] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += wire.feed(stream[start:stop])
    assert found == sent
    assert [wire.encode(packet) for packet in found] == [packet.write() for packet in sent]


def test_bytes_that_come_one_by_one_make_the_same_packets():
    sent: list[Packet] = [CONNECT, *(mqtt5.PublishPacket("a/b", bytes(size)) for size in (0, 200, 20_000))]
    wire, stream = Codec(), b"".join(packet.write() for packet in sent)
    assert [packet for byte in stream for packet in wire.feed(bytes([byte]))] == sent


@given(connects, packets_of_clients)
def test_no_truncated_packet_is_a_packet_or_an_error(first, second):
    start, data = first.write(), second.write()
    assert all(Codec().feed(start[:length]) == [] for length in range(len(start)))
    assert all(opened().feed(data[:length]) == [] for length in range(len(data)))


def test_a_publisher_that_repeats_itself_is_still_read_right():
    wire = opened()
    sent = [mqtt5.PublishPacket(topic, payload) for topic in "aab" for payload in (b"1", b"2", b"345", b"")]
    sent += [mqtt5.PublishPacket("a", b"6", retain=True), mqtt5.PublishPacket("a", b"", topic_alias=3)]
    stream = b"".join(packet.write() for packet in sent)
    assert wire.feed(stream[:-3]) + wire.feed(stream[-3:]) == sent


def test_a_dialled_wire_reads_what_servers_send():
    sent: list[Packet] = [
        mqtt5.ConnAckPacket(assigned_client_id="c", reason_str="welcome"),
        mqtt5.SubAckPacket(1, [mqtt5.SubAckReasonCode.NOT_AUTHORIZED], reason_str="no"),
        mqtt5.UnsubAckPacket(2, [mqtt5.UnsubAckReasonCode.SUCCESS]),
        mqtt5.PublishPacket("a", b"1", subscription_ids=[7, 300]),
        mqtt5.PingRespPacket(),
        mqtt5.DisconnectPacket(server_reference="elsewhere"),
    ]
    wire = Codec(dialled=True)
    assert wire.feed(b"".join(packet.write() for packet in sent)) == sent
    assert refusal(Codec(dialled=True), mqtt5.PingRespPacket().write()).reason_code == ILLEGAL
    assert refusal(wire, CONNECT.write()).reason_code == ILLEGAL


def test_authentication_may_come_before_the_answer_to_a_dialled_wire():
    go_on = mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION
    challenge = mqtt5.AuthPacket(reason_code=go_on, authentication_method="m")
    wire = Codec(dialled=True)
    assert wire.feed(challenge.write()) == [challenge]
    assert refusal(wire, mqtt5.PingRespPacket().write()).reason_code == ILLEGAL


def test_a_packet_too_large_is_refused_as_soon_as_its_length_is_known():
    wire = opened(packet_bytes_max=1000)
    assert len(wire.feed(mqtt5.PublishPacket("a", bytes(1000 - 7)).write())) == 1
    assert refusal(wire, b"\x30" + number(998)).reason_code == TOO_LARGE
    whole = mqtt5.PublishPacket("a", bytes(1000 - 6)).write()
    assert refusal(opened(packet_bytes_max=1000), whole).reason_code == TOO_LARGE


def test_less_is_kept_for_those_who_did_not_connect():
    assert refusal(Codec(), b"\x10" + number(CONNECT_BYTES_MAX)).reason_code == TOO_LARGE
    assert opened().feed(b"\x30" + number(CONNECT_BYTES_MAX)) == []
    largest_will = mqtt5.ConnectPacket("c", will=mqtt5.Will("w", payload=bytes(65535)))
    assert Codec().feed(largest_will.write()) == [largest_will]


@pytest.mark.mqtt("MQTT-1.5.5-1")
def test_a_length_without_end_is_malformed_at_its_fourth_byte():
    wire = opened()
    assert wire.feed(b"\x30\xff\xff\xff") == []
    assert refusal(wire, b"\xff").reason_code == MALFORMED
    assert refusal(opened(), b"\x30\x85\x80\x00").reason_code == MALFORMED
    assert refusal(opened(), b"\x30\x85\x00\x00\x01").reason_code == MALFORMED


@pytest.mark.parametrize("first", [0x30, 0x40, 0x82, 0xC0, 0xE0, 0xF0, 0x20])
def test_nothing_may_come_before_connect(first):
    assert refusal(Codec(), bytes([first])).reason_code == ILLEGAL


@pytest.mark.parametrize("first", [0x10, 0x20, 0x90, 0xB0, 0xD0])
def test_a_client_may_not_connect_twice_nor_send_what_servers_send(first):
    assert refusal(opened(), bytes([first])).reason_code == ILLEGAL


@pytest.mark.mqtt(
    "MQTT-2.1.3-1",
    "MQTT-3.3.1-2",
    "MQTT-3.3.1-4",
    "MQTT-3.6.1-1",
    "MQTT-3.8.1-1",
    "MQTT-3.10.1-1",
    "MQTT-3.14.1-1",
    "MQTT-3.15.1-1",
)
@pytest.mark.parametrize("first", [0x00, 0x11, 0x36, 0x38, 0x39, 0x41, 0x60, 0x80, 0xA0, 0xC1, 0xE1, 0xF1])
def test_flags_that_no_packet_has_are_malformed(first):
    assert refusal(opened(), bytes([first])).reason_code == MALFORMED


def test_packets_before_a_bad_one_are_not_lost_and_what_follows_is_ignored():
    wire = Codec()
    error = refusal(wire, CONNECT.write() + PING + b"\x00\x00" + PING)
    assert error.packets == [CONNECT, mqtt5.PingReqPacket()]
    assert wire.feed(PING) == []


NOT_UTF8 = [b"\xff", b"\xed\xa0\x80", b"a\xc3", b"\xc0\x80", b"a\0b"]
IN_PUBLISH = {
    "a wildcard in the topic": (publish("a/+"), BAD_TOPIC),
    "another wildcard in the topic": (publish("#"), BAD_TOPIC),
    "no topic and no alias": (publish(""), ILLEGAL),
    "topic alias 0": (publish(props=properties(b"\x23\0\0")), BAD_ALIAS),
    "packet identifier 0": (publish(first=0x32, packet_id=b"\0\0"), ILLEGAL),
    "no packet identifier": (raw(0x32, text("a"), b"\1"), MALFORMED),
    "no topic": (raw(0x30, b"\0"), MALFORMED),
    "a topic longer than the packet": (raw(0x30, b"\0\5ab"), MALFORMED),
    "no properties": (raw(0x30, text("a")), MALFORMED),
    "properties longer than the packet": (raw(0x30, text("a"), b"\x09\x26\0\1a"), MALFORMED),
    "a property cut by the length of all": (publish(props=b"\1\1\1"), MALFORMED),
    "a user property cut by the length of all": (publish(props=b"\4\x26\0\1a\0\1b"), MALFORMED),
    "a user property that ends in the payload": (publish(props=b"\7\x26\0\1a\0\2b\xff"), MALFORMED),
    "a user property with a very long name": (publish(props=b"\7\x26\1\1a\0\1b"), MALFORMED),
    "a payload format of 2": (publish(props=properties(b"\1\2")), ILLEGAL),
    "a property twice": (publish(props=properties(b"\3\0\1a\3\0\1a")), ILLEGAL),
    "a wildcard in the response topic": (publish(props=properties(b"\x08\0\1#")), BAD_TOPIC),
    "an empty response topic": (publish(props=properties(b"\x08\0\0")), BAD_TOPIC),
    "a subscription identifier": (publish(props=properties(b"\x0b\1")), ILLEGAL),
    "a property of another packet": (publish(props=properties(b"\x11\0\0\0\1")), MALFORMED),
    "an unknown property": (publish(props=properties(b"\x7e\0")), MALFORMED),
    "correlation data longer than the properties": (publish(props=properties(b"\x09\0\x09a")), MALFORMED),
}
IN_OTHERS = {
    "packet identifier 0 in SUBSCRIBE": (subscribe(packet_id=b"\0\0"), ILLEGAL),
    "SUBSCRIBE to nothing": (subscribe(b""), ILLEGAL),
    "SUBSCRIBE to an empty filter": (subscribe(text("") + b"\0"), MALFORMED),
    "SUBSCRIBE without options": (subscribe(text("a")), MALFORMED),
    "SUBSCRIBE with QoS 3": (subscribe(text("a") + b"\3"), ILLEGAL),
    "SUBSCRIBE with retain handling 3": (subscribe(text("a") + b"\x30"), ILLEGAL),
    "SUBSCRIBE with reserved bits": (subscribe(text("a") + b"\x40"), MALFORMED),
    "SUBSCRIBE shared and no-local": (subscribe(text("$share/g/a") + b"\4"), ILLEGAL),
    "subscription identifier 0": (subscribe(props=properties(b"\x0b\0")), ILLEGAL),
    "packet identifier 0 in UNSUBSCRIBE": (unsubscribe(packet_id=b"\0\0"), ILLEGAL),
    "UNSUBSCRIBE from nothing": (unsubscribe(b""), ILLEGAL),
    "UNSUBSCRIBE from an empty filter": (unsubscribe(text("")), MALFORMED),
    "packet identifier 0 in PUBACK": (raw(0x40, b"\0\0"), ILLEGAL),
    "half a packet identifier": (raw(0x50, b"\1"), MALFORMED),
    "AUTH without anything": (raw(0xF0), MALFORMED),
    "AUTH without a method": (raw(0xF0, b"\x18\0"), ILLEGAL),
    "DISCONNECT with bytes behind it": (raw(0xE0, b"\0\0\0"), MALFORMED),
}
WILL = text("c") + b"\0" + text("w") + text("payload")
IN_CONNECT = {
    "the reserved flag": (connect(flags=3), MALFORMED),
    "a QoS of no will": (connect(flags=0x0A), MALFORMED),
    "a will with QoS 3": (connect(flags=0x1E, rest=WILL), MALFORMED),
    "a will without a topic": (connect(flags=6, rest=text("c") + b"\0" + text("") + text("")), BAD_TOPIC),
    "a will to a wildcard": (connect(flags=6, rest=text("c") + b"\0" + text("#") + text("")), BAD_TOPIC),
    "a will cut short": (connect(flags=6, rest=WILL[:-1]), MALFORMED),
    "no client id": (connect(rest=b""), MALFORMED),
    "no user name": (connect(flags=0x82), MALFORMED),
    "nothing but a name": (raw(0x10, text("MQTT"), b"\5"), MALFORMED),
    "receive maximum 0": (connect(props=properties(b"\x21\0\0")), ILLEGAL),
    "maximum packet size 0": (connect(props=properties(b"\x27\0\0\0\0")), ILLEGAL),
    "a boolean of 2": (connect(props=properties(b"\x17\2")), ILLEGAL),
    "authentication data without a method": (connect(props=properties(b"\x16\0\1a")), ILLEGAL),
    "another protocol": (connect(name="MQXX"), UNSUPPORTED),
}


@pytest.mark.parametrize(
    ("data", "code"), [*IN_PUBLISH.values(), *IN_OTHERS.values()], ids=[*IN_PUBLISH, *IN_OTHERS]
)
def test_what_the_standard_forbids_is_refused(data, code):
    wire = opened()
    wire.feed(publish() + publish())
    error = refusal(wire, PING + data + b"\xff" * 9)
    assert error.reason_code == code
    assert error.packets == [mqtt5.PingReqPacket()]


@pytest.mark.parametrize(("data", "code"), IN_CONNECT.values(), ids=IN_CONNECT)
def test_what_a_connect_may_not_be_is_refused(data, code):
    assert refusal(Codec(), data + b"\xff" * 9).reason_code == code


@pytest.mark.mqtt(
    "MQTT-1.5.4-1",
    "MQTT-1.5.4-2",
    "MQTT-1.5.7-1",
    "MQTT-3.1.3-4",
    "MQTT-3.1.3-11",
    "MQTT-3.1.3-12",
    "MQTT-3.3.2-1",
    "MQTT-3.3.2-19",
    "MQTT-3.8.3-1",
    "MQTT-3.10.3-1",
)
@pytest.mark.parametrize("bad", NOT_UTF8)
def test_text_that_is_no_utf_8_is_malformed_wherever_it_stands(bad):
    user_property = properties(b"\x26", text("a"), text(bad))
    packets = [
        publish(bad),
        publish(props=user_property),
        publish(props=properties(b"\x26", text(bad), text("a"))),
        publish(props=properties(b"\3", text(bad))),
        subscribe(text(bad) + b"\0"),
        subscribe(props=user_property),
        unsubscribe(text(bad)),
        raw(0x40, b"\0\1\0", user_property),
        raw(0xE0, b"\0", user_property),
        raw(0xF0, b"\x18", properties(b"\x15", text(bad))),
    ]
    connects = [
        connect(rest=text(bad)),
        connect(props=user_property),
        connect(flags=6, rest=text("c") + user_property + text("w") + text("")),
        connect(flags=6, rest=text("c") + b"\0" + text(bad) + text("")),
        connect(flags=0x82, rest=text("c") + text(bad)),
    ]
    assert {refusal(opened(), data).reason_code for data in packets} == {MALFORMED}
    assert {refusal(Codec(), data).reason_code for data in connects} == {MALFORMED}


def samples() -> list[bytes]:
    """Return good packets, each behind a CONNECT."""
    attributes = properties(b"\x26", text("speed"), text("61"), b"\x26", text("kind"), text("car"))
    others = properties(b"\3", text("€"), b"\x09\0\2ab", b"\x02\0\0\0\1")
    packets = [
        publish("a/b", attributes),
        publish("ä", others, first=0x3D, packet_id=b"\0\7"),
        publish(),
        subscribe(text("a/#") + b"\x29" + text("$share/g/b") + b"\1", properties(b"\x0b\x80\1")),
        unsubscribe(text("a") + text("b")),
        raw(0x50, b"\0\1\x10", properties(b"\x1f", text("why"))),
        raw(0xE0, b"\4", properties(b"\x11\0\0\0\1")),
        raw(0xF0, b"\x18", properties(b"\x15", text("m"), b"\x16\0\1a")),
        PING,
    ]
    login = connect(flags=0xC6, props=properties(b"\x21\0\1"), rest=WILL + text("u") + text("p"))
    return [login, *(connect() + each for each in packets)]


@pytest.mark.parametrize("data", samples())
def test_mutated_bytes_are_packets_or_a_wire_error_and_nothing_else(data):
    assert len(Codec().feed(data)) in (1, 2), "good before it is mutated"
    chance = random.Random(f"mutations of {data.hex()}")
    for _ in range(1000):
        mutant = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(mutant))
            new = bytes(
                [chance.choice((0, 1, 0x26, 0x7F, 0x80, 0xFF, mutant[at] ^ 1 << chance.randrange(8)))]
            )
            mutant[at : at + chance.randrange(2)] = new * chance.randrange(2)
        try:
            packets: list[Any] = Codec().feed(bytes(mutant))
        except PacketError as error:
            packets = error.packets
        for packet in packets:
            packet.write()  # what came in can go out


def dialled(**options: Any) -> Codec:
    wire = Codec(dialled=True, **options)
    wire.feed(mqtt5.ConnAckPacket().write())
    return wire


texts = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=200)


def user_property(name: bytes, value: bytes) -> bytes:
    return b"\x26\x00" + bytes((len(name),)) + name + b"\x00" + bytes((len(value),)) + value


pieces_of_properties = st.one_of(
    st.builds(lambda number: b"\x0b" + bytes((number,)), st.integers(0, 255)),
    st.builds(user_property, st.binary(max_size=120), st.binary(max_size=120)),
    st.sampled_from([b"\x01\x00", b"\x01\x02", b"\x02\0\0\0\1", b"\x26", b"\x0b", user_property(b"a", b"b")]),
)


@given(pieces=st.lists(pieces_of_properties, max_size=4), error=st.sampled_from([0, 0, 0, 1, -1]))
def test_properties_of_a_server_are_found_good_or_bad_as_by_the_full_walk(pieces, error):
    """The quick look of a dialled wire is the walk's faster twin."""
    properties = b"".join(pieces)
    length = max(len(properties) + error, 0)
    size = bytes((length,)) if length < 128 else bytes((length & 0x7F | 0x80, length >> 7))
    data = size + properties
    try:
        check_properties(data, 0, len(data))
    except (PacketError, ValueError):
        assert not _are_from_server(data, 0, len(data))


@given(texts, texts, st.integers(1, 200))
def test_a_server_may_send_identifiers_and_long_texts(name, value, identifier):
    packet = mqtt5.PublishPacket(
        "t", b"x", user_properties=[(name, value)] * 3, subscription_ids=[identifier]
    )
    (found,) = dialled().feed(packet.write())
    assert isinstance(found, mqtt5.PublishPacket)
    assert found.write() == packet.write()


def test_short_acknowledgements_are_checked_too():
    with pytest.raises(PacketError, match="packet identifier 0"):
        dialled().feed(b"\x40\x02\x00\x00")
    (found,) = dialled().feed(b"\x40\x02\x00\x07")
    assert isinstance(found, mqtt5.PubAckPacket)
    assert found.packet_id == 7


def test_a_wire_that_trusts_reads_the_same_and_finds_what_cannot_be_read_malformed():
    packets = [
        mqtt5.PublishPacket("t", bytes((number,)), user_properties=[("a", "é" * number)])
        for number in range(200)
    ]
    data = b"".join(each.write() for each in packets)
    found = dialled(trusts=True).feed(data)
    assert [each.write() for each in found if isinstance(each, mqtt5.PublishPacket)] == [
        each.write() for each in packets
    ]
    for bad in (b"\x30\x05\x00\x09t\x00x", b"\x30\x05\x00\x01t\x70x", b"\x30\x01\x00", b"\x30\x00"):
        with pytest.raises(PacketError) as refused:
            dialled(trusts=True).feed(data + bad)
        assert refused.value.reason_code in (0x81, 0x82)
        assert len(refused.value.packets) == 200
