"""Is each SUBSCRIBE and UNSUBSCRIBE answered as MQTT 5 has it, sections 3.8 to 3.11?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.talking import Client, goodbye, new_hub

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.core.connection import Connection
from betimes.broker.core.extension import Decision, Extension, GoOn
from betimes.broker.core.subscribe import NOTHING_TO_RESERVE
from betimes.broker.core.subscribe_request import SubscribeRequest
from betimes.mqtt.reason_codes import GRANTED, REASON_TEXT_MAX

Gone, Subscribed = mqtt5.DisconnectReasonCode, mqtt5.SubAckReasonCode


def test_a_refused_filter_says_where_and_the_connection_stays():
    client = Client(new_hub())
    suback = client.subscribe("a", "b", properties={"filter": "speed >> 5"})
    assert [each.value for each in suback.reason_codes] == [0x83, 0x83]
    assert suback.reason_str == "a value was expected here, not `>`: speed >^> 5 (hint: did you mean >?)"
    assert client.subscribe("a").reason_codes == [GRANTED[0]]


@pytest.mark.mqtt("MQTT-3.8.4-5", "MQTT-3.8.4-7", "MQTT-3.9.3-1")
def test_each_pattern_of_a_subscribe_is_answered_apart():
    access_control = AccessControl(anonymous=True, access=AccessList.read("topic read open/#", "list"))
    client = Client(new_hub(access_control=access_control))
    suback = client.subscribe_raw("open/#", "shut", "a/#/b", "$share/", qos=1)
    granted, refused, wrong, half = suback.reason_codes
    assert granted is GRANTED[1]
    assert refused is Subscribed.NOT_AUTHORIZED
    assert wrong is half is Subscribed.TOPIC_FILTER_INVALID
    assert "shut: not allowed" in suback.reason_str


def test_a_discreet_server_does_not_say_why_a_subscription_is_refused():
    access_control = AccessControl(
        anonymous=True, access=AccessList.read("topic read open", "list"), discreet=True
    )
    suback = Client(new_hub(access_control=access_control)).subscribe("shut", "open")
    assert suback.reason_codes == [Subscribed.UNSPECIFIED_ERROR, GRANTED[0]]
    assert suback.reason_str is None


def test_only_so_many_subscriptions_are_taken():
    client = Client(new_hub(subscriptions_max=1))
    assert client.subscribe("a", "b").reason_codes == [GRANTED[0], Subscribed.QUOTA_EXCEEDED]
    assert client.subscribe("a", qos=2).reason_codes == [GRANTED[2]]


@pytest.mark.mqtt("MQTT-3.1.2-29")
def test_a_client_that_does_not_want_reasons_gets_them_only_where_it_must_expect_them():
    access_control = AccessControl(anonymous=True, access=AccessList.read("topic read open", "list"))
    client = Client(new_hub(access_control=access_control), request_problem_info=False)
    assert client.subscribe("shut").reason_str is None
    (said,) = client.publish("", topic_alias=5)
    assert said.reason_str  # a DISCONNECT may have one [MQTT-3.1.2-29]


@pytest.mark.mqtt("MQTT-3.9.2-1")
def test_a_reason_that_would_be_too_large_is_left_out():
    client = Client(new_hub(), max_packet_size=40)
    suback = client.subscribe("t", properties={"filter": "x" * 30 + " >"})
    assert (suback.reason_codes[0].value, suback.reason_str) == (0x83, None)
    long = Client(new_hub()).subscribe_raw(*["a#"] * 100).reason_str
    assert len(long) == REASON_TEXT_MAX


def test_a_subscription_identifier_of_0_ends_the_connection():
    client = Client(new_hub())
    client.connection.receive(b"\x82\x09\x00\x01\x02\x0b\x00\x00\x01t\x00", 0.0)
    assert goodbye(client.read()) is Gone.PROTOCOL_ERROR


def test_no_local_on_a_shared_subscription_ends_the_connection():
    client = Client(new_hub())
    client.connection.receive(
        mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("$share/g/t", no_local=True)]).write(), 0.0
    )
    assert goodbye(client.read()) is Gone.PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT-3.10.4-6", "MQTT-3.11.3-1")
def test_unsubscribing_ends_what_came_and_says_what_was_there():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("t", "$share/g/u")
    (answer,) = sub.ask(mqtt5.UnsubscribePacket(3, ["t", "$share/g/u", "u"]))
    done = mqtt5.UnsubAckReasonCode
    assert answer.reason_codes == [done.SUCCESS, done.SUCCESS, done.NO_SUBSCRIPTION_EXISTED]
    pub.publish("t")
    pub.publish("u")
    assert sub.got() == []


@pytest.mark.parametrize(
    "said",
    [{"filter": "speed >"}, {"reliability": "banana"}, {"resume-after": "banana"}, {"max-delay": "a\nb"}],
)
def test_reasons_are_one_line_for_clients_that_hang_up_at_others(said):
    suback = Client(new_hub()).subscribe("t", properties=said)
    assert suback.reason_codes[0].value == 0x83
    assert suback.reason_str.isprintable()


@pytest.mark.parametrize("said", [{"bandwidth": "any"}, {"latency": "100ms"}])
def test_without_a_network_a_guarantee_is_granted_with_a_word(said):
    suback = Client(new_hub()).subscribe("cars", "ships", properties=said)
    assert suback.reason_codes == [GRANTED[0]] * 2
    assert suback.reason_str == f"{NOTHING_TO_RESERVE}; {NOTHING_TO_RESERVE}"


class Deciding(Extension):
    """Decides on guarantees when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[SubscribeRequest, GoOn]] = []

    def decide(self, _connection: Connection, request: SubscribeRequest, go_on: GoOn, _now_s: float) -> bool:
        self.asked.append((request, go_on))
        return True


def deciding() -> tuple[Client, Deciding]:
    hub, extension = new_hub(), Deciding()
    hub.extend(extension)
    return Client(hub), extension


@pytest.mark.parametrize("said", [{}, {"price": "3"}])
def test_who_asks_for_nothing_or_something_else_does_not_wait(said):
    client, extension = deciding()
    assert client.subscribe("cars", properties=said).reason_codes == [GRANTED[0]]
    assert not extension.asked


def test_who_asks_for_a_guarantee_is_answered_when_it_is_decided():
    client, extension = deciding()
    filters = [mqtt5.TopicFilter(topic, max_qos=mqtt5.QoS(0)) for topic in ("cars", "ships")]
    wish = [("bandwidth", "any")]
    assert client.ask(mqtt5.SubscribePacket(1, filters, user_properties=wish)) == []
    ((request, go_on),) = extension.asked
    assert request.filters == ["cars", "ships"]
    go_on({"cars": Decision(True, "yes", reservation="r1"), "ships": Decision(False, "no")}, 5.0)
    (suback,) = client.read()
    assert suback.reason_codes == [GRANTED[0], Subscribed.QUOTA_EXCEEDED]
    assert suback.reason_str == "yes; no"
    (grant,) = client.hub.sessions["c1"].subscriptions.values()
    assert (grant.pattern, grant.reservation) == ("cars", "r1")
