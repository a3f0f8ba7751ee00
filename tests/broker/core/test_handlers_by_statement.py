"""Does the broker keep those statements of MQTT 5 that no other test is about?"""

from __future__ import annotations

import unicodedata
from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, goodbye, new_connection, new_hub
from tests.golden.packets import properties

from betimes.broker.access.authentication import AccessControl
from betimes.model.buffer_settings import BufferSettings

QOS = [mqtt5.QoS(level) for level in range(3)]
Gone = mqtt5.DisconnectReasonCode
REJECTED = mqtt5.PubAckReasonCode.UNSPECIFIED_ERROR


def messages(packets: list[Any]) -> list[mqtt5.PublishPacket]:
    return [each for each in packets if isinstance(each, mqtt5.PublishPacket)]


def two(**options: Any) -> tuple[Client, Client]:
    """Return a publisher, and a subscriber whose session lives on."""
    hub = new_hub()
    return Client(hub, "pub"), Client(hub, "sub", session_expiry_interval=1000, **options)


def again(client: Client, now_s: float = 0.0, **options: Any) -> Client:
    client.connection.lost(now_s)
    return Client(client.hub, "sub", clean_start=False, session_expiry_interval=1000, now_s=now_s, **options)


# --- CONNECT and CONNACK


@pytest.mark.mqtt("MQTT-3.1.2-28", "MQTT-4.12.0-6")
def test_connack_has_nothing_that_the_client_did_not_ask_for():
    connack = Client(new_hub(), request_response_info=False).connack
    assert connack.response_info is None
    assert connack.authentication_method is None


@pytest.mark.mqtt("MQTT-3.2.2-19", "MQTT-3.2.2-20")
def test_a_connack_that_refuses_is_no_larger_than_the_client_takes():
    whole = Client(new_hub(access_control=AccessControl()), user_properties=[("a", "b")])
    assert whole.connack.reason_str
    small = Client(new_hub(access_control=AccessControl()), max_packet_size=5)
    assert (small.connack.reason_code, small.connack.reason_str) == (whole.connack.reason_code, None)
    assert small.connack.user_properties == []


@pytest.mark.mqtt("MQTT-3.2.0-1")
def test_connack_comes_before_what_waited_in_the_session():
    pub, sub = two()
    sub.subscribe("t", qos=1)
    sub.connection.lost(0.0)
    pub.publish("t", qos=1)
    connection = new_connection(pub.hub)
    connection.receive(mqtt5.ConnectPacket("sub").write(), 0.0)
    assert [each >> 4 for each in first_bytes(connection.take_outbox())] == [2, 3]


def first_bytes(data: bytes) -> list[int]:
    found = []
    while data:
        found.append(data[0])
        data = data[mqtt5.read(memoryview(data))[1] :]
    return found


@pytest.mark.mqtt("MQTT-4.1.0-1")
def test_a_session_lives_as_long_as_its_connection():
    client = Client(new_hub(), session_expiry_interval=1)
    client.subscribe("t")
    client.hub.tick(10_000.0)
    client.now_s = 10_000.0
    assert messages(client.publish("t"))


# --- wills


def watched(will: mqtt5.Will, **connect: Any) -> tuple[Client, Client]:
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("gone", retain_as_published=True)
    return watcher, Client(hub, "c", will=will, **connect)


@pytest.mark.mqtt("MQTT-3.1.2-14")
def test_a_will_without_the_retain_flag_is_not_retained():
    watcher, client = watched(mqtt5.Will("gone", payload=b"x"))
    client.connection.lost(0.0)
    assert [each.retain for each in watcher.read()] == [False]
    late = Client(client.hub, "late")
    late.subscribe("gone")
    assert late.got() == []


@pytest.mark.mqtt("MQTT-3.1.2-10")
def test_a_will_is_published_once():
    watcher, client = watched(mqtt5.Will("gone", will_delay_interval=5), session_expiry_interval=10)
    client.connection.lost(0.0)
    client.hub.tick(5.0)
    assert len(watcher.got()) == 1
    client.hub.tick(10.0)  # the session ends
    assert "c" not in client.hub.sessions
    assert watcher.got() == []


@pytest.mark.mqtt("MQTT-3.1.3-10")
def test_the_user_properties_of_a_will_keep_their_order():
    pairs = [("b", "2"), ("a", "1"), ("b", "1")]
    watcher, client = watched(mqtt5.Will("gone", user_properties=pairs))
    client.connection.lost(0.0)
    assert watcher.read()[0].user_properties == pairs


# --- PUBLISH


@pytest.mark.mqtt("MQTT-3.3.2-15", "MQTT-3.3.2-16", "MQTT-3.3.2-17", "MQTT-3.3.2-18", "MQTT-3.3.2-20")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_the_publisher_states_reaches_every_subscriber(qos):
    pub, sub = two()
    said: dict[str, Any] = {
        "content_type": "text/plain",
        "response_topic": "back",
        "correlation_data": b"\x00\xff",
        "user_properties": [("b", "2"), ("a", "1"), ("b", "2"), ("", "")],
    }
    aliased = Client(pub.hub, "aliased", topic_alias_max=1)
    for client in (sub, aliased):
        client.subscribe("t", qos=qos)
    pub.publish("t", qos=qos, **said)
    for client in (sub, aliased):
        (found,) = messages(client.read())
        assert {name: getattr(found, name) for name in said} == said


@pytest.mark.mqtt("MQTT-3.3.1-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_repetition_of_the_publisher_is_none_for_the_subscriber(qos):
    pub, sub = two()
    sub.subscribe("t", qos=qos)
    pub.publish("t", qos=qos, duplicate=True)
    assert [each.duplicate for each in messages(sub.read())] == [False]


@pytest.mark.mqtt("MQTT-3.3.1-8")
def test_a_message_without_the_retain_flag_leaves_what_is_retained():
    pub, sub = two()
    pub.publish("a", b"kept", retain=True)
    for topic, payload in (("a", b"new"), ("a", b""), ("b", b"new")):
        pub.publish(topic, payload)
    sub.subscribe("#")
    assert sub.got() == [("a", b"kept")]


@pytest.mark.mqtt("MQTT-3.3.1-6", "MQTT-3.3.1-7")
def test_an_empty_retained_message_is_delivered_and_nothing_is_retained():
    pub, sub = two()
    pub.publish("t", b"kept", retain=True)
    sub.subscribe("t")
    sub.read()
    pub.publish("t", b"", retain=True)
    assert sub.got() == [("t", b"")]
    late = Client(pub.hub, "late")
    late.subscribe("t")
    assert late.got() == []


@pytest.mark.mqtt("MQTT-3.3.1-9", "MQTT-3.3.1-10", "MQTT-3.3.1-11", "MQTT-3.8.4-4")
@pytest.mark.parametrize(
    ("handling", "at_first", "later"),
    [("SEND_ALWAYS", 1, 1), ("SEND_IF_SUBSCRIPTION_NOT_EXISTS", 1, 0), ("SEND_NEVER", 0, 0)],
)
def test_retain_handling_decides_at_the_first_and_at_later_subscriptions(handling, at_first, later):
    pub, sub = two()
    pub.publish("t", retain=True)
    sub.subscribe("t", retain_handling=getattr(mqtt5.RetainHandling, handling))
    assert len(sub.got()) == at_first
    sub.subscribe("t", retain_handling=getattr(mqtt5.RetainHandling, handling))
    assert len(sub.got()) == later


@pytest.mark.mqtt("MQTT-3.3.4-5")
def test_copies_by_different_subscriptions_have_the_identifier_of_each():
    pub, sub = two()
    sub.subscribe("t", subscription_id=1)
    sub.subscribe("$share/g/t", subscription_id=2)
    pub.publish("t")
    assert sorted(each.subscription_ids for each in messages(sub.read())) == [[1], [2]]


@pytest.mark.mqtt("MQTT-3.3.4-10", "MQTT-4.9.0-3")
def test_other_packets_do_not_wait_for_acknowledgements():
    pub, sub = two(receive_max=1)
    sub.subscribe("t", qos=2)
    for number in (1, 2):
        pub.publish("t", qos=2, packet_id=number)
    (sent,) = messages(sub.read())
    assert isinstance(sub.ask(mqtt5.PingReqPacket())[0], mqtt5.PingRespPacket)
    assert sub.subscribe("u").packet_id == 1
    assert isinstance(sub.publish("v", qos=1)[0], mqtt5.PubAckPacket)
    assert isinstance(sub.ask(mqtt5.PubRecPacket(sent.packet_id or 0))[0], mqtt5.PubRelPacket)


@pytest.mark.mqtt("MQTT-4.3.2-5")
def test_a_packet_id_that_was_acknowledged_names_a_new_message_of_qos_1():
    pub, sub = two()
    sub.subscribe("t")
    for payload in (b"1", b"2"):
        pub.publish("t", payload, qos=1, packet_id=5, duplicate=True)
    assert [payload for _, payload in sub.got()] == [b"1", b"2"]


@pytest.mark.mqtt("MQTT-4.3.3-9")
def test_a_packet_id_that_was_rejected_names_a_new_message_of_qos_2():
    pub, sub = two()
    sub.subscribe("#")
    (rejected,) = pub.publish("$SYS/x", qos=2, packet_id=5)
    assert rejected.reason_code.value >= 0x80
    (taken,) = pub.publish("t", qos=2, packet_id=5)
    assert taken.reason_code.value < 0x80
    assert sub.got() == [("t", b"x")]


@pytest.mark.mqtt("MQTT-4.3.3-13")
def test_qos_2_is_acknowledged_to_the_end_though_the_message_expired():
    pub, sub = two()
    sub.subscribe("t", qos=2)
    sub.connection.lost(0.0)
    pub.publish("t", qos=2, message_expiry_interval=1)
    pub.now_s = 100.0
    (again_,) = pub.publish("t", qos=2, message_expiry_interval=1, duplicate=True)
    assert isinstance(again_, mqtt5.PubRecPacket)
    (done,) = pub.ask(mqtt5.PubRelPacket(7))
    assert done.reason_code is mqtt5.PubCompReasonCode.SUCCESS


@pytest.mark.mqtt("MQTT-4.3.3-7")
def test_a_message_of_qos_2_that_was_sent_does_not_expire():
    pub, sub = two()
    sub.subscribe("t", qos=2)
    pub.publish("t", qos=2, message_expiry_interval=1)
    assert len(messages(sub.read())) == 1
    assert [each.duplicate for each in messages(again(sub, 100.0).first)] == [True]


@pytest.mark.mqtt("MQTT-4.4.0-1", "MQTT-4.3.2-3", "MQTT-4.3.3-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_is_repeated_after_a_reconnection_and_at_no_other_time(qos):
    pub, sub = two()
    sub.subscribe("t", qos=qos)
    pub.publish("t", qos=qos)
    (sent,) = messages(sub.read())
    for now_s in (1.0, 60.0, 3600.0):
        pub.hub.tick(now_s)
        sub.connection.drained(now_s)
        assert sub.read() == []
    (repeated,) = messages(again(sub, 3600.0).first)
    assert (repeated.packet_id, repeated.duplicate) == (sent.packet_id, True)


@pytest.mark.mqtt("MQTT-4.4.0-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_that_the_client_rejects_is_not_repeated(qos):
    pub, sub = two()
    sub.subscribe("t", qos=qos)
    pub.publish("t", qos=qos)
    packet_id = messages(sub.read())[0].packet_id or 0
    if qos == 1:
        sub.send(mqtt5.PubAckPacket(packet_id, reason_code=REJECTED))
    else:
        sub.send(mqtt5.PubRecPacket(packet_id, reason_code=mqtt5.PubRecReasonCode.UNSPECIFIED_ERROR))
    assert again(sub).first == []


@pytest.mark.mqtt("MQTT-4.6.0-5", "MQTT-4.6.0-6")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_of_one_publisher_come_in_order(qos):
    pub, sub = two(receive_max=3)
    sub.subscribe("t", qos=qos)
    for number in range(1, 21):
        pub.publish("t", str(number).encode(), qos=qos, **({"packet_id": number} if qos else {}))
        pub.ask(mqtt5.PubRelPacket(number))
    came: list[bytes] = []
    while found := messages(sub.read()):
        came += [each.payload for each in found]
        for each in found if qos else ():
            packet_id = each.packet_id or 0
            answers = [mqtt5.PubAckPacket] if qos == 1 else [mqtt5.PubRecPacket, mqtt5.PubCompPacket]
            for answer in answers:
                sub.send(answer(packet_id))
    assert came == [str(number).encode() for number in range(1, 21)]


# --- answers within the maximum packet size


@pytest.mark.mqtt(
    "MQTT-3.4.2-2",
    "MQTT-3.4.2-3",
    "MQTT-3.5.2-2",
    "MQTT-3.5.2-3",
    "MQTT-3.6.2-2",
    "MQTT-3.6.2-3",
    "MQTT-3.7.2-2",
    "MQTT-3.7.2-3",
    "MQTT-3.11.2-1",
    "MQTT-3.11.2-2",
    "MQTT-3.14.2-3",
    "MQTT-3.14.2-4",
    "MQTT-3.1.2-24",
)
def test_no_answer_is_larger_than_the_client_takes():
    hub = new_hub()
    small = 24  # just enough for CONNACK
    packets: list[Any] = [
        *(mqtt5.PublishPacket("$SYS/x", b"", qos=QOS[qos], packet_id=qos) for qos in (1, 2)),
        mqtt5.PubRecPacket(9),
        mqtt5.PubRelPacket(9),
        mqtt5.UnsubscribePacket(3, ["a", "b"]),
        mqtt5.PublishPacket("", b"", topic_alias=1),  # which ends the connection
    ]
    client = Client(hub, max_packet_size=small)
    assert client.connack.reason_code.value == 0
    for packet in packets:
        client.send(packet)
        data = client.connection.take_outbox()
        assert 0 < len(data) <= small, packet
    assert client.connection.closing


@pytest.mark.mqtt("MQTT-3.9.2-2")
def test_a_suback_has_no_user_properties_that_make_it_too_large():
    hub = new_hub(buffer=BufferSettings())
    whole, small = Client(hub, "whole"), Client(hub, "small", max_packet_size=24)
    assert whole.subscribe("t", properties={"resume-after": "now"}).user_properties
    suback = small.subscribe("t", properties={"resume-after": "now"})
    assert (suback.reason_codes[0].value, suback.user_properties) == (0, [])


# --- SUBSCRIBE and UNSUBSCRIBE


@pytest.mark.mqtt("MQTT-3.8.4-8", "MQTT-3.3.4-2")
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_message_has_the_lower_qos_of_publisher_and_subscription(published, granted):
    pub, sub = two()
    assert sub.subscribe("t", qos=granted).reason_codes[0].value == granted
    pub.publish("t", qos=published)
    assert [each.qos.value for each in messages(sub.read())] == [min(published, granted)]


@pytest.mark.mqtt("MQTT-3.8.4-3")
def test_a_subscription_with_the_same_filter_takes_the_place_of_the_older_one():
    pub, sub = two()
    sub.subscribe("t", qos=2, subscription_id=1)
    sub.subscribe("t", qos=0, subscription_id=2)
    pub.publish("t", qos=2)
    assert [(each.qos.value, each.subscription_ids) for each in messages(sub.read())] == [(0, [2])]
    sub.send(mqtt5.UnsubscribePacket(3, ["t"]))
    sub.read()
    pub.publish("t")
    assert sub.read() == []


@pytest.mark.mqtt("MQTT-3.8.4-4")
def test_nothing_in_flight_is_lost_where_a_subscription_is_replaced():
    pub, sub = two(receive_max=1)
    sub.subscribe("t", qos=1)
    for payload in (b"1", b"2"):
        pub.publish("t", payload, qos=1)
    (first,) = messages(sub.read())
    sub.subscribe("t", qos=1)
    (second,) = messages(sub.ask(mqtt5.PubAckPacket(first.packet_id or 0)))
    assert second.payload == b"2"


@pytest.mark.mqtt("MQTT-3.10.4-1", "MQTT-4.7.3-4")
def test_filters_are_compared_character_by_character():
    pub, sub = two()
    composed, apart = (unicodedata.normalize(form, "caf\u00e9/+") for form in ("NFC", "NFD"))
    sub.subscribe(composed)
    for other in (apart, composed.upper(), "café/#", "café/x"):
        (answer,) = sub.ask(mqtt5.UnsubscribePacket(2, [other]))
        assert answer.reason_codes == [mqtt5.UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED]
    pub.publish(apart.replace("+", "x"))
    assert sub.got() == []
    pub.publish(composed.replace("+", "x"))
    assert len(sub.got()) == 1
    (answer,) = sub.ask(mqtt5.UnsubscribePacket(2, [composed]))
    assert answer.reason_codes == [mqtt5.UnsubAckReasonCode.SUCCESS]


@pytest.mark.mqtt("MQTT-3.10.4-3", "MQTT-3.10.4-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_sent_is_delivered_to_the_end_after_an_unsubscription(qos):
    pub, sub = two()
    sub.subscribe("t", qos=qos)
    pub.publish("t", qos=qos)
    (sent,) = messages(sub.read())
    sub.ask(mqtt5.UnsubscribePacket(2, ["t"]))
    pub.publish("t", b"no more", qos=qos, packet_id=8)
    back = again(sub)
    (repeated,) = messages(back.first)
    assert (repeated.packet_id, repeated.payload) == (sent.packet_id, b"x")
    if qos == 1:
        assert back.ask(mqtt5.PubAckPacket(sent.packet_id or 0)) == []
    else:
        assert isinstance(back.ask(mqtt5.PubRecPacket(sent.packet_id or 0))[0], mqtt5.PubRelPacket)


@pytest.mark.mqtt("MQTT-4.7.2-1")
def test_a_wildcard_at_the_beginning_does_not_match_a_topic_of_the_broker():
    pub, sub = two()
    sub.subscribe("#", "+/x", "+/+/x")
    pub.hub.publishing.announce("$SYS/x", b"x", 0.0)
    assert sub.got() == []
    sub.subscribe("$SYS/+")
    assert len(sub.got()) == 1


# --- shared subscriptions


def shared(*names: str, qos: int = 2) -> tuple[Client, dict[str, Client]]:
    hub = new_hub()
    members = {name: Client(hub, name, session_expiry_interval=10) for name in names}
    for member in members.values():
        member.subscribe("$share/g/t", qos=qos)
    return Client(hub, "pub"), members


@pytest.mark.mqtt("MQTT-4.8.2-3")
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_member_of_a_group_gets_the_qos_that_it_was_granted(granted):
    pub, members = shared("sub", qos=granted)
    pub.publish("t", qos=2)
    assert [each.qos.value for each in messages(members["sub"].read())] == [granted]


@pytest.mark.mqtt("MQTT-4.8.2-4")
def test_qos_2_is_delivered_to_the_end_to_the_member_that_was_chosen():
    pub, members = shared("sub", "other")
    pub.publish("t", b"1", qos=2)
    ((chosen, sent),) = [(each, got) for each in members.values() if (got := messages(each.read()))]
    (idle,) = [each for each in members.values() if each is not chosen]
    chosen.connection.lost(0.0)
    pub.hub.tick(1.0)
    assert idle.read() == []
    name = next(name for name, each in members.items() if each is chosen)
    back = Client(pub.hub, name, clean_start=False, session_expiry_interval=10)
    (repeated,) = messages(back.first)
    assert (repeated.payload, repeated.duplicate, repeated.packet_id) == (b"1", True, sent[0].packet_id)


@pytest.mark.mqtt("MQTT-4.8.2-6")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_a_member_of_a_group_rejects_goes_to_no_other(qos):
    pub, members = shared("sub", "other", qos=qos)
    pub.publish("t", qos=qos)
    ((chosen, (sent,)),) = [(each, got) for each in members.values() if (got := messages(each.read()))]
    if qos == 1:
        chosen.send(mqtt5.PubAckPacket(sent.packet_id or 0, reason_code=REJECTED))
    else:
        refused = mqtt5.PubRecReasonCode.UNSPECIFIED_ERROR
        chosen.send(mqtt5.PubRecPacket(sent.packet_id or 0, reason_code=refused))
    pub.hub.tick(5.0)
    assert [each.read() for each in members.values()] == [[], []]
    chosen.connection.lost(5.0)
    pub.hub.tick(100.0)
    assert [messages(each.read()) for each in members.values()] == [[], []]


# --- DISCONNECT


@pytest.mark.mqtt("MQTT-3.14.4-3", "MQTT-3.1.2-10")
def test_a_normal_disconnect_discards_the_will_for_good():
    watcher, client = watched(mqtt5.Will("gone", will_delay_interval=5), session_expiry_interval=10)
    client.send(mqtt5.DisconnectPacket())
    for now_s in (5.0, 10.0, 20.0):
        client.hub.tick(now_s)
    assert watcher.got() == []


@pytest.mark.mqtt("MQTT-3.14.4-2", "MQTT-4.13.2-1")
def test_the_connection_is_closed_behind_disconnect():
    client = Client(new_hub())
    client.connection.receive(b"\x30" + bytes((len(properties()) + 2,)) + b"\x00\x00" + properties(), 0.0)
    assert goodbye(client.read()) is Gone.PROTOCOL_ERROR
    assert client.connection.closing
    assert client.connection in client.hub.outboxes.waiting  # so that the driver closes the socket
