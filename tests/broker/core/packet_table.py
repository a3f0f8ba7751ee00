"""The table of packets: what a client sends, well-formed or not, and what the broker answers, one row each.

A row states the statements of the standard that it proves: numbers of MQTT 5 and, behind `old`, of MQTT
3.1.1. Packets are written by hand (`tests/golden/packets.py`): no codec of the broker takes part. An answer
is compared byte by byte, but for a CONNACK or a DISCONNECT, of which the reason code counts.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.golden.packets import (
    connect,
    data,
    disconnect,
    packet,
    ping,
    properties,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    subscribe,
    text,
    unsubscribe,
    will,
)

NOT_UTF_8 = {
    "a byte that no text has": b"\xff",
    "a surrogate": b"\xed\xa0\x80",
    "an overlong letter": b"\xc1\x81",
}
BOM = "\ufeff"


class Code(NamedTuple):
    """A CONNACK or a DISCONNECT, by its reason code."""

    first: int  # byte of the packet
    code: int
    flags: int = 0  # of CONNACK


class Answer(NamedTuple):
    """What comes back, and whether the broker closes the connection behind it."""

    packets: tuple[bytes | Code, ...] = ()
    closes: bool = False


class Row(NamedTuple):
    """Bytes of a client, and the answer; `stage` is what the client has sent before."""

    name: str
    sends: bytes
    answer: Answer
    statements: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    stage: bytes = b""


OPENED = connect("c", request_problem=0)  # so that answers have no reason strings [MQTT-3.1.2-29]
OPENED_311 = connect("c", v3=True)


def answers(*packets: bytes | Code) -> Answer:
    return Answer(packets)


def accepted(flags: int = 0) -> Answer:
    return Answer((Code(0x20, 0, flags),))


def refused(code: int) -> Answer:
    return Answer((Code(0x20, code),), closes=True)


def ended(code: int, *before: bytes) -> Answer:
    return Answer((*before, Code(0xE0, code)), closes=True)


CLOSED = Answer(closes=True)
MALFORMED, PROTOCOL_ERROR, UNSUPPORTED, BAD_TOPIC, BAD_ALIAS = 0x81, 0x82, 0x84, 0x90, 0x94
ALIAS_ABOVE_MAX = 0xFFFF


def mqtt5(*numbers: str) -> tuple[str, ...]:
    return tuple(f"MQTT-{each}" for each in numbers)


mqtt311 = mqtt5


def suback(packet_id: int, *codes: int) -> bytes:
    return packet(0x90, packet_id.to_bytes(2, "big"), b"\x00", bytes(codes))


def unsuback(packet_id: int, *codes: int) -> bytes:
    return packet(0xB0, packet_id.to_bytes(2, "big"), b"\x00", bytes(codes))


def opening(
    *, name: str = "MQTT", level: int = 5, flags: int = 2, known: bytes = b"\x00", rest: bytes = text("c")
) -> bytes:
    """Return a CONNECT whose every part can be wrong."""
    return packet(0x10, text(name), bytes((level, flags)), b"\x00\x3c", known, rest)


WILL = b"\x00" + text("w") + data(b"x")
CLOSING = mqtt5("3.1.4-1", "3.2.2-7", "4.13.1-1", "4.13.2-1", "3.14.0-1")

CONNECTS = [
    Row("a client connects", connect("c"), accepted(), mqtt5("3.1.4-5", "3.2.2-1")),
    Row(
        "a client continues a session that does not exist", connect("c", clean=False), accepted(),
        mqtt5("3.1.2-6", "3.2.2-3"),
    ),
    Row(
        "a client states everything, in order",
        connect("c", last_word=will("w", b"x", qos=2, retain=True), login=("ann", b"secret")),
        accepted(), mqtt5("3.1.3-1", "3.1.2-12", "3.1.2-17", "3.1.2-19"),
    ),
    Row("a password without a user name", opening(flags=0x42, rest=text("c") + data(b"p")), accepted()),
    Row("PINGREQ before CONNECT", ping(), refused(PROTOCOL_ERROR), mqtt5("3.1.0-1", "3.14.0-1")),
    Row("PUBLISH before CONNECT", publish("t"), refused(PROTOCOL_ERROR), mqtt5("3.1.0-1")),
    Row("another protocol", opening(name="MQXX"), refused(UNSUPPORTED), mqtt5("3.1.2-1", "3.2.2-7")),
    Row("a version that is to come", opening(level=6), refused(UNSUPPORTED), mqtt5("3.1.2-2", "3.2.2-6")),
    Row("the reserved flag of CONNECT", opening(flags=0x03), refused(MALFORMED), mqtt5("3.1.2-3") + CLOSING),
    Row("flags of the fixed header of CONNECT", b"\x11" + connect("c")[1:], refused(MALFORMED),
        mqtt5("2.1.3-1")),
    Row("CONNECT without properties", packet(0x10, text("MQTT"), b"\x05\x02\x00\x00"), refused(MALFORMED),
        mqtt5("2.2.2-1", "3.1.4-1")),
    Row("CONNECT without a client id", opening(rest=b""), refused(MALFORMED), mqtt5("3.1.3-3")),
    Row("a will flag without a will", opening(flags=0x06), refused(MALFORMED), mqtt5("3.1.2-9")),
    Row("a will without its payload", opening(flags=0x06, rest=text("c") + b"\x00" + text("w")),
        refused(MALFORMED),
        mqtt5("3.1.2-9")),
    Row("a will QoS without a will", opening(flags=0x0A), refused(MALFORMED), mqtt5("3.1.2-11")),
    Row("a will QoS of 3", opening(flags=0x1E, rest=text("c") + WILL), refused(MALFORMED), mqtt5("3.1.2-12")),
    Row("a will retain flag without a will", opening(flags=0x22), refused(MALFORMED), mqtt5("3.1.2-13")),
    Row("a user name without its flag", opening(rest=text("c") + text("ann")), refused(MALFORMED),
        mqtt5("3.1.2-16")),
    Row("a flag without its user name", opening(flags=0x82), refused(MALFORMED), mqtt5("3.1.2-17")),
    Row("a password without its flag", opening(flags=0x82, rest=text("c") + text("ann") + data(b"p")),
        refused(MALFORMED), mqtt5("3.1.2-18")),
    Row("a flag without its password", opening(flags=0xC2, rest=text("c") + text("ann")), refused(MALFORMED),
        mqtt5("3.1.2-19")),
    Row("a will before the client id", opening(flags=0x06, rest=WILL + text("c")), refused(MALFORMED),
        mqtt5("3.1.3-1")),
    Row("a will to a wildcard", opening(flags=0x06, rest=text("c") + b"\x00" + text("a/#") + data(b"")),
        refused(BAD_TOPIC), mqtt5("4.7.0-1")),
    Row("a will topic with U+0000", opening(flags=0x06, rest=text("c") + b"\x00" + text("a\0") + data(b"")),
        refused(MALFORMED), mqtt5("1.5.4-2", "4.7.3-2")),
    Row("a receive maximum of 0", connect("c", receive_max=0), refused(PROTOCOL_ERROR)),
    Row("a maximum packet size of 0", connect("c", max_packet=0), refused(PROTOCOL_ERROR)),
    Row("a property twice", opening(known=b"\x06\x21\x00\x01\x21\x00\x01"), refused(PROTOCOL_ERROR)),
    Row("an authentication method", connect("c", auth_method="SCRAM"), refused(0x8C),
        mqtt5("4.12.0-1", "3.2.2-7")),
    Row("a client id of 1 byte", connect("0"), accepted(), mqtt5("3.1.3-5")),
    Row("a client id of 23 bytes", connect("abcdefghijklmnopqrstuvw"), accepted(), mqtt5("3.1.3-5")),
    Row("letters that a client id may have", connect("0123456789xyzABCDEFGHIJ"), accepted(),
        mqtt5("3.1.3-5")),
    Row("other letters that a client id may have", connect("KLMNOPQRSTUVWXYZ"), accepted(), mqtt5("3.1.3-5")),
    *(
        Row(f"a client id with {name}", opening(rest=data(bad)), refused(MALFORMED),
            mqtt5("3.1.3-4", "1.5.4-1"))
        for name, bad in NOT_UTF_8.items()
    ),
    Row("a will topic that is no UTF-8",
        opening(flags=6, rest=text("c") + b"\x00" + data(b"\xff") + data(b"")),
        refused(MALFORMED), mqtt5("3.1.3-11", "1.5.4-1")),
    Row("a user name that is no UTF-8", opening(flags=0x82, rest=text("c") + data(b"\xff")),
        refused(MALFORMED),
        mqtt5("3.1.3-12", "1.5.4-1")),
    Row("what comes behind a refused CONNECT", opening(level=6) + ping(), refused(UNSUPPORTED),
        mqtt5("3.1.4-6")),
    Row("a remaining length of five bytes", b"\x10\xff\xff\xff\xff\x01", refused(MALFORMED),
        mqtt5("1.5.5-1")),
    Row("a remaining length with a byte too many", b"\x10\x8e\x80\x00" + connect("c")[2:], refused(MALFORMED),
        mqtt5("1.5.5-1")),
]  # fmt: skip

T_0, T_1, T_2 = (publish("t", qos=qos, packet_id=7) for qos in range(3))
HEARD = (subscribe(1, "t", qos=2), suback(1, 2))  # what a client sends to hear itself, and the answer

PUBLISHES = [
    Row("QoS 0", T_0, answers(), mqtt5("3.3.4-1")),
    Row("QoS 1", T_1, answers(b"\x40\x03\x00\x07\x10"), mqtt5("3.3.4-1", "4.3.2-4", "2.2.1-5")),
    Row("QoS 2", T_2, answers(b"\x50\x03\x00\x07\x10"), mqtt5("3.3.4-1", "4.3.3-8", "2.2.1-5")),
    Row("QoS 2, released", T_2 + pubrel(7), answers(b"\x50\x03\x00\x07\x10", pubcomp(7)),
        mqtt5("4.3.3-11", "2.2.1-5")),
    Row("QoS 0 to itself", HEARD[0] + T_0, answers(HEARD[1], T_0),
        mqtt5("2.2.1-2", "2.2.2-1", "4.3.1-1", "3.3.2-3")),
    Row("QoS 1 to itself", HEARD[0] + T_1, answers(HEARD[1], publish("t", qos=1, packet_id=1), puback(7)),
        mqtt5("4.3.2-1", "4.3.2-2")),
    Row("QoS 2 to itself, to the end", HEARD[0] + T_2 + pubrec(1) + pubcomp(1),
        answers(HEARD[1], publish("t", qos=2, packet_id=1), pubrec(7), pubrel(1)),
        mqtt5("4.3.3-1", "4.3.3-2", "4.3.3-4", "2.2.1-5")),
    Row("a byte order mark in a topic", subscribe(1, "+") + publish(BOM + "t"),
        answers(suback(1, 0), publish(BOM + "t")), mqtt5("1.5.4-3")),
    Row("QoS 3", b"\x36" + T_1[1:], ended(MALFORMED), mqtt5("3.3.1-4", "4.13.1-1", "4.13.2-1")),
    Row("DUP with QoS 0", b"\x38" + T_0[1:], ended(MALFORMED), mqtt5("3.3.1-2")),
    Row("no packet identifier", packet(0x32, text("t"), b"\x00"), ended(MALFORMED)),
    Row("packet identifier 0", publish("t", qos=1), ended(PROTOCOL_ERROR), mqtt5("2.2.1-3")),
    Row("no topic", packet(0x30, b"\x00"), ended(MALFORMED), mqtt5("3.3.2-1")),
    Row("an empty topic", publish(""), ended(PROTOCOL_ERROR), mqtt5("4.7.3-1")),
    Row("no properties", packet(0x30, text("t")), ended(MALFORMED), mqtt5("2.2.2-1")),
    *(
        Row(f"a topic with {name}", packet(0x30, data(bad), b"\x00"), ended(MALFORMED),
            mqtt5("3.3.2-1", "1.5.4-1"))
        for name, bad in NOT_UTF_8.items()
    ),
    Row("U+0000 in a topic", publish("a\0b"), ended(MALFORMED), mqtt5("1.5.4-2", "4.7.3-2")),
    Row("+ in a topic", publish("a/+"), ended(BAD_TOPIC), mqtt5("3.3.2-2", "4.7.0-1")),
    Row("# in a topic", publish("#"), ended(BAD_TOPIC), mqtt5("3.3.2-2", "4.7.0-1")),
    Row("topic alias 0", publish("t", alias=0), ended(BAD_ALIAS), mqtt5("3.3.2-8")),
    Row("a topic alias above the maximum", publish("t", alias=ALIAS_ABOVE_MAX), ended(BAD_ALIAS)),
    Row("a topic alias that stands for nothing", publish("", alias=1), ended(PROTOCOL_ERROR)),
    Row("a payload format of 2", publish("t", payload_format=2), ended(PROTOCOL_ERROR)),
    Row("a response topic that is no UTF-8", packet(0x30, text("t"), b"\x04\x08" + data(b"\xff")),
        ended(MALFORMED),
        mqtt5("3.3.2-13")),
    Row("a wildcard in a response topic", publish("t", response_topic="a/#"), ended(BAD_TOPIC),
        mqtt5("3.3.2-14")),
    Row("a content type that is no UTF-8", packet(0x30, text("t"), b"\x04\x03" + data(b"\xff")),
        ended(MALFORMED),
        mqtt5("3.3.2-19")),
    Row("a user property whose name is no UTF-8",
        packet(0x30, text("t"), b"\x07\x26" + data(b"\xff") + text("v")), ended(MALFORMED), mqtt5("1.5.7-1")),
    Row("a user property whose value is no UTF-8",
        packet(0x30, text("t"), b"\x07\x26" + text("n") + data(b"\xff")), ended(MALFORMED), mqtt5("1.5.7-1")),
    Row("a subscription identifier from a client", publish("t", subscription_id=1), ended(PROTOCOL_ERROR),
        mqtt5("3.3.4-6")),
    Row("a property length with a byte too many", packet(0x30, text("t"), b"\x80\x00"), ended(MALFORMED),
        mqtt5("1.5.5-1")),
    Row("a property of another packet", packet(0x30, text("t"), b"\x05\x11\x00\x00\x00\x01"),
        ended(MALFORMED)),
    Row("a property that there is not", packet(0x30, text("t"), b"\x02\x7e\x00"), ended(MALFORMED)),
    Row("properties longer than the packet", packet(0x30, text("t"), b"\x09\x01"), ended(MALFORMED)),
]  # fmt: skip

HELD_1 = (subscribe(1, "t", qos=2) + T_1, (suback(1, 2), publish("t", qos=1, packet_id=1), puback(7)))
HELD_2 = (subscribe(1, "t", qos=2) + T_2, (suback(1, 2), publish("t", qos=2, packet_id=1), pubrec(7)))

ACKNOWLEDGEMENTS = [
    Row("PUBACK of nothing", puback(9), answers()),
    Row("PUBCOMP of nothing", pubcomp(9), answers()),
    Row("PUBREC of nothing", pubrec(9), answers(b"\x62\x03\x00\x09\x92")),
    Row("PUBREL of nothing", pubrel(9), answers(b"\x70\x03\x00\x09\x92")),
    Row("PUBACK for QoS 1", HELD_1[0] + puback(1), answers(*HELD_1[1])),
    Row("PUBREC for QoS 1", HELD_1[0] + pubrec(1), ended(PROTOCOL_ERROR, *HELD_1[1]), mqtt5("4.13.1-1")),
    Row("PUBCOMP for QoS 1", HELD_1[0] + pubcomp(1), ended(PROTOCOL_ERROR, *HELD_1[1]), mqtt5("4.13.1-1")),
    Row("PUBACK for QoS 2", HELD_2[0] + puback(1), ended(PROTOCOL_ERROR, *HELD_2[1]), mqtt5("4.13.1-1")),
    Row("PUBCOMP before PUBREC", HELD_2[0] + pubcomp(1), ended(PROTOCOL_ERROR, *HELD_2[1])),
    Row("PUBACK behind PUBREC", HELD_2[0] + pubrec(1) + puback(1),
        ended(PROTOCOL_ERROR, *HELD_2[1], pubrel(1))),
    Row("PUBREC that rejects", HELD_2[0] + pubrec(1, 0x80) + pubrec(1),
        answers(*HELD_2[1], b"\x62\x03\x00\x01\x92"), mqtt5("4.3.3-4")),
    Row("packet identifier 0", puback(0), ended(PROTOCOL_ERROR)),
    Row("half a packet identifier", packet(0x40, b"\x01"), ended(MALFORMED)),
    Row("a reason code that PUBACK has not", packet(0x40, b"\x00\x01\x01"), ended(MALFORMED)),
    Row("flags of PUBACK", b"\x41\x02\x00\x01", ended(MALFORMED), mqtt5("2.1.3-1")),
    Row("flags of PUBREC", b"\x51\x02\x00\x01", ended(MALFORMED), mqtt5("2.1.3-1")),
    *(
        Row(f"flags {flags} of PUBREL", bytes((0x60 | flags,)) + pubrel(1)[1:], ended(MALFORMED),
            mqtt5("3.6.1-1", "2.1.3-1"))
        for flags in range(16) if flags != 2
    ),
    Row("flags of PUBCOMP", b"\x71\x02\x00\x01", ended(MALFORMED), mqtt5("2.1.3-1")),
]  # fmt: skip

SUBSCRIPTIONS = [
    Row("a subscription", subscribe(300, "t", qos=1), answers(suback(300, 1)),
        mqtt5("3.8.4-1", "3.8.4-2", "3.8.4-6", "3.8.4-7", "2.2.1-6", "2.2.2-1")),
    Row("three subscriptions", subscribe(2, ("a", 2), ("b", 0), ("c", 1)), answers(suback(2, 2, 0, 1)),
        mqtt5("3.8.4-5", "3.8.4-6", "3.9.3-1")),
    *(
        Row(f"flags {flags} of SUBSCRIBE", bytes((0x80 | flags,)) + subscribe(1, "t")[1:], ended(MALFORMED),
            mqtt5("3.8.1-1", "2.1.3-1"))
        for flags in range(16) if flags != 2
    ),
    Row("packet identifier 0", subscribe(0, "t"), ended(PROTOCOL_ERROR), mqtt5("2.2.1-3")),
    Row("no topic filter", subscribe(1), ended(PROTOCOL_ERROR), mqtt5("3.8.3-2")),
    Row("an empty topic filter", subscribe(1, ""), ended(MALFORMED), mqtt5("4.7.3-1")),
    Row("no options", packet(0x82, b"\x00\x01\x00", text("t")), ended(MALFORMED), mqtt5("3.8.3-2")),
    Row("no properties", packet(0x82, b"\x00\x01"), ended(MALFORMED), mqtt5("2.2.2-1")),
    *(
        Row(f"a filter with {name}", packet(0x82, b"\x00\x01\x00", data(bad), b"\x00"), ended(MALFORMED),
            mqtt5("3.8.3-1", "1.5.4-1"))
        for name, bad in NOT_UTF_8.items()
    ),
    Row("U+0000 in a filter", subscribe(1, "a\0"), ended(MALFORMED), mqtt5("1.5.4-2", "4.7.3-2")),
    Row("QoS 3", subscribe(1, ("t", 3)), ended(PROTOCOL_ERROR)),
    Row("retain handling 3", subscribe(1, ("t", 0x30)), ended(PROTOCOL_ERROR)),
    Row("the first reserved option", subscribe(1, ("t", 0x40)), ended(MALFORMED), mqtt5("3.8.3-5")),
    Row("the second reserved option", subscribe(1, ("t", 0x80)), ended(MALFORMED), mqtt5("3.8.3-5")),
    Row("no local on a shared subscription", subscribe(1, ("$share/g/t", 4)), ended(PROTOCOL_ERROR),
        mqtt5("3.8.3-4")),
    Row("subscription identifier 0", subscribe(1, "t", subscription_id=0), ended(PROTOCOL_ERROR)),
    *(
        Row(f"the wrong filter {pattern}", subscribe(1, pattern), answers(suback(1, 0x8F)),
            mqtt5(number, "3.1.2-29"))
        for pattern, number in (
            ("a/#/b", "4.7.1-1"), ("a#", "4.7.1-1"), ("a+", "4.7.1-2"), ("+a/b", "4.7.1-2"),
            ("$share/", "4.8.2-1"), ("$share//t", "4.8.2-1"), ("$share/g", "4.8.2-2"),
            ("$share/g/", "4.8.2-2"), ("$share/g+/t", "4.8.2-2"), ("$share/#/t", "4.8.2-2"),
        )
    ),
    *(
        Row(f"the filter {pattern}", subscribe(1, pattern), answers(suback(1, 0)), mqtt5(number))
        for pattern, number in (
            ("#", "4.7.1-1"), ("a/#", "4.7.1-1"), ("+", "4.7.1-2"), ("+/a/+", "4.7.1-2"), ("/+", "4.7.1-2"),
            ("$share/g/a/#", "4.8.2-2"), ("/", "4.7.3-1"),
        )
    ),
    Row("an end of a subscription", subscribe(1, "t") + unsubscribe(300, "t"),
        answers(suback(1, 0), unsuback(300, 0)), mqtt5("3.10.4-4", "3.10.4-5", "2.2.1-6", "2.2.2-1")),
    Row("an end of what there is not", unsubscribe(2, "t"), answers(unsuback(2, 0x11)), mqtt5("3.10.4-5")),
    Row("ends of several", subscribe(1, "b") + unsubscribe(2, "a", "b"),
        answers(suback(1, 0), unsuback(2, 0x11, 0)),
        mqtt5("3.10.4-6", "3.11.3-1")),
    *(
        Row(f"flags {flags} of UNSUBSCRIBE", bytes((0xA0 | flags,)) + unsubscribe(1, "t")[1:],
            ended(MALFORMED),
            mqtt5("3.10.1-1", "2.1.3-1"))
        for flags in range(16) if flags != 2
    ),
    Row("UNSUBSCRIBE with packet identifier 0", unsubscribe(0, "t"), ended(PROTOCOL_ERROR), mqtt5("2.2.1-3")),
    Row("UNSUBSCRIBE without a filter", unsubscribe(1), ended(PROTOCOL_ERROR), mqtt5("3.10.3-2")),
    *(
        Row(f"UNSUBSCRIBE with {name}", packet(0xA2, b"\x00\x01\x00", data(bad)), ended(MALFORMED),
            mqtt5("3.10.3-1", "1.5.4-1"))
        for name, bad in NOT_UTF_8.items()
    ),
]  # fmt: skip

OTHERS = [
    Row("PINGREQ", ping(), answers(packet(0xD0)), mqtt5("3.12.4-1")),
    Row("PINGREQ with a byte too many", packet(0xC0, b"\x00"), ended(MALFORMED)),
    Row("flags of PINGREQ", b"\xc1\x00", ended(MALFORMED), mqtt5("2.1.3-1")),
    Row("a second CONNECT", connect("c"), ended(PROTOCOL_ERROR), mqtt5("3.1.0-2", "3.2.0-2")),
    Row("DISCONNECT", disconnect(), CLOSED),
    Row("DISCONNECT and more", disconnect() + ping(), CLOSED, mqtt5("3.14.4-1")),
    *(
        Row(f"flags {flags} of DISCONNECT", bytes((0xE0 | flags, 0)), ended(MALFORMED),
            mqtt5("3.14.1-1", "2.1.3-1"))
        for flags in range(1, 16)
    ),
    Row("a reason code that DISCONNECT has not", packet(0xE0, b"\x01"), ended(MALFORMED)),
    Row("DISCONNECT that prolongs its session", disconnect(0, session_expiry=10), ended(PROTOCOL_ERROR)),
    *(
        Row(f"flags {flags} of AUTH", bytes((0xF0 | flags, 0)), ended(MALFORMED),
            mqtt5("3.15.1-1", "2.1.3-1"))
        for flags in range(1, 16)
    ),
    Row("AUTH without a method in CONNECT", packet(0xF0, b"\x19", properties(auth_method="m")),
        ended(PROTOCOL_ERROR),
        mqtt5("4.12.0-6", "4.12.1-2")),
    Row("CONNACK from a client", packet(0x20, b"\x00\x00\x00"), ended(PROTOCOL_ERROR)),
    Row("SUBACK from a client", suback(1, 0), ended(PROTOCOL_ERROR)),
    Row("PINGRESP from a client", packet(0xD0), ended(PROTOCOL_ERROR)),
    Row("a packet type that there is not", b"\x00\x00", ended(MALFORMED), mqtt5("2.1.3-1", "4.13.1-1")),
    Row("what comes before a malformed packet", ping() + b"\x00\x00", ended(MALFORMED, packet(0xD0))),
]  # fmt: skip

BAD_LOGIN = packet(0x10, text("MQTT"), b"\x04\x42\x00\x3c", text("c"), data(b"p"))


def old(*rows: Row) -> list[Row]:
    """Return rows behind a CONNECT of MQTT 3.1.1."""
    return [each._replace(name=f"3.1.1: {each.name}", stage=OPENED_311) for each in rows]


def puback_311(packet_id: int) -> bytes:
    return b"\x40\x02" + packet_id.to_bytes(2, "big")


CONNECTS_311 = [
    Row("3.1.1: a client connects", connect("c", v3=True), answers(b"\x20\x02\x00\x00"),
        old=mqtt311("3.1.4-4", "3.2.0-1", "3.2.2-1")),
    Row("3.1.1: a session that does not exist", connect("c", v3=True, clean=False),
        answers(b"\x20\x02\x00\x00"),
        old=mqtt311("3.1.2-4", "3.2.2-3")),
    Row("3.1: a client connects", opening(name="MQIsdp", level=3, known=b""), answers(b"\x20\x02\x00\x00")),
    Row("3.1: a level that it has not", opening(name="MQIsdp", level=4, known=b""),
        Answer((b"\x20\x02\x00\x01",), closes=True), old=mqtt311("3.1.2-2")),
    Row("3.1.1: a level that there is not", opening(level=3, known=b""),
        Answer((b"\x20\x02\x00\x01",), closes=True),
        old=mqtt311("3.1.2-2", "3.2.2-4", "3.2.2-5")),
    Row("3.1.1: the reserved flag of CONNECT", opening(level=4, flags=3, known=b""), CLOSED,
        old=mqtt311("3.1.2-3", "3.1.4-1", "3.2.2-6", "4.8.0-1")),
    Row("3.1.1: no client id, and a session", connect("", v3=True, clean=False),
        Answer((b"\x20\x02\x00\x02",), closes=True), old=mqtt311("3.1.3-7", "3.1.3-8", "3.2.2-5")),
    Row("3.1.1: no client id", connect("", v3=True), answers(b"\x20\x02\x00\x00"), old=mqtt311("3.1.3-6")),
    Row("3.1.1: a password without a user name", BAD_LOGIN, CLOSED, old=mqtt311("3.1.2-22")),
    Row("3.1.1: a will without its flag",
        opening(level=4, known=b"", rest=text("c") + text("w") + data(b"x")), CLOSED,
        old=mqtt311("3.1.2-11", "3.1.4-1")),
    Row("3.1.1: a will QoS of 3",
        opening(level=4, flags=0x1E, known=b"", rest=text("c") + text("w") + data(b"x")), CLOSED,
        old=mqtt311("3.1.2-14")),
    Row("3.1.1: PINGREQ before CONNECT", ping(), refused(PROTOCOL_ERROR), old=mqtt311("3.1.0-1")),
    Row("3.1.1: what comes behind a refused CONNECT", connect("", v3=True, clean=False) + ping(),
        Answer((b"\x20\x02\x00\x02",), closes=True), old=mqtt311("3.1.4-5")),
]  # fmt: skip

PACKETS_311 = old(
    Row("PINGREQ", ping(), answers(b"\xd0\x00"), old=mqtt311("3.12.4-1")),
    Row("a second CONNECT", connect("c", v3=True), CLOSED, old=mqtt311("3.1.0-2")),
    Row("QoS 1", publish("t", qos=1, packet_id=7, v3=True), answers(puback_311(7)),
        old=mqtt311("3.3.4-1", "4.3.2-2", "2.3.1-6")),
    Row("QoS 2", publish("t", qos=2, packet_id=7, v3=True) + pubrel(7),
        answers(b"\x50\x02\x00\x07", b"\x70\x02\x00\x07"),
        old=mqtt311("3.3.4-1", "4.3.3-2", "2.3.1-6")),
    Row("QoS 1 to a topic that it may not publish", publish("$SYS/x", qos=1, packet_id=7, v3=True),
        answers(puback_311(7)),
        old=mqtt311("3.3.5-2")),
    Row("QoS 3", b"\x36" + publish("t", qos=1, packet_id=7, v3=True)[1:], CLOSED,
        old=mqtt311("3.3.1-4", "4.8.0-1")),
    Row("a wildcard in a topic", publish("a/+", v3=True), CLOSED, old=mqtt311("3.3.2-2", "4.7.1-1")),
    Row("a topic that is no UTF-8", packet(0x30, data(b"\xff")), CLOSED, old=mqtt311("1.5.3-1", "3.3.2-1")),
    Row("U+0000 in a topic", publish("a\0", v3=True), CLOSED, old=mqtt311("1.5.3-2", "4.7.3-2")),
    Row("packet identifier 0", publish("t", qos=1, v3=True), CLOSED, old=mqtt311("2.3.1-1")),
    Row("a subscription", subscribe(300, ("a", 0), ("b", 2), v3=True), answers(b"\x90\x04\x01\x2c\x00\x02"),
        old=mqtt311("3.8.4-1", "3.8.4-2", "3.8.4-4", "3.8.4-5", "3.9.3-1", "2.3.1-7")),
    Row("a subscription that fails", subscribe(1, "a#", v3=True), answers(b"\x90\x03\x00\x01\x80"),
        old=mqtt311("3.8.4-5", "3.9.3-2", "4.7.1-2")),
    Row("an option that came later", subscribe(1, ("t", 4), v3=True), CLOSED, old=mqtt311("3.8.3-4")),
    Row("a subscription with QoS 3", subscribe(1, ("t", 3), v3=True), CLOSED, old=mqtt311("3.8.3-4")),
    Row("no topic filter", subscribe(1, v3=True), CLOSED, old=mqtt311("3.8.3-3")),
    Row("flags of SUBSCRIBE", b"\x80" + subscribe(1, "t", v3=True)[1:], CLOSED,
        old=mqtt311("3.8.1-1", "2.2.2-2")),
    Row("an end of a subscription", unsubscribe(300, "t", v3=True), answers(b"\xb0\x02\x01\x2c"),
        old=mqtt311("3.10.4-4", "3.10.4-5", "2.3.1-7")),
    Row("flags of UNSUBSCRIBE", b"\xa0" + unsubscribe(1, "t", v3=True)[1:], CLOSED,
        old=mqtt311("3.10.1-1", "2.2.2-2")),
    Row("UNSUBSCRIBE without a filter", unsubscribe(1, v3=True), CLOSED, old=mqtt311("3.10.3-2")),
    Row("flags of PUBREL", b"\x60\x02\x00\x01", CLOSED, old=mqtt311("3.6.1-1", "2.2.2-2")),
    Row("flags of DISCONNECT", b"\xe1\x00", CLOSED, old=mqtt311("3.14.1-1", "2.2.2-2")),
    Row("DISCONNECT", disconnect(v3=True), CLOSED),
    Row("AUTH, which came later", packet(0xF0, b"\x18\x00"), CLOSED),
    Row("a reason code, which came later", packet(0x40, b"\x00\x01\x00"), CLOSED),
)  # fmt: skip


def _behind(stage: bytes, kind: str, rows: list[Row]) -> list[Row]:
    return [each._replace(name=f"{kind}: {each.name}", stage=stage) for each in rows]


ROWS = [
    *_behind(b"", "CONNECT", CONNECTS),
    *_behind(OPENED, "PUBLISH", PUBLISHES),
    *_behind(OPENED, "acknowledgement", ACKNOWLEDGEMENTS),
    *_behind(OPENED, "SUBSCRIBE", SUBSCRIPTIONS),
    *_behind(OPENED, "other", OTHERS),
    *CONNECTS_311,
    *PACKETS_311,
]
