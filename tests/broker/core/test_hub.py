"""Do sessions, retained messages and wills behave as MQTT 5 has it?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.core.hub import REMOVED_AT_ONCE
from betimes.matching.topics import LEVELS_MAX
from betimes.model.telemetry import Reason

Answer, Gone = mqtt5.ConnAckReasonCode, mqtt5.DisconnectReasonCode


@pytest.mark.mqtt("MQTT-3.1.2-23", "MQTT-4.1.0-2", "MQTT-3.2.2-3")
def test_a_session_ends_with_its_connection_unless_it_asks_to_live_on():
    hub = new_hub()
    Client(hub, "short").ask(mqtt5.DisconnectPacket())
    Client(hub, "long", session_expiry_interval=10).ask(mqtt5.DisconnectPacket())
    assert set(hub.sessions) == {"long"}
    hub.tick(9.9)
    back = Client(hub, "long", now_s=9.9, clean_start=False)
    assert back.connack.session_present
    back.connection.lost(20.0)
    hub.tick(100.0)
    assert not hub.sessions


@pytest.mark.mqtt("MQTT-3.1.2-5", "MQTT-4.5.0-1", "MQTT-3.1.2-23")
def test_what_comes_while_a_subscriber_is_away_waits_for_it():
    hub = new_hub()
    away = Client(hub, "sub", session_expiry_interval=100)
    away.subscribe("t", qos=1)
    away.connection.lost(0.0)
    pub = Client(hub, "pub")
    pub.publish("t", b"kept", qos=1)
    pub.publish("t", b"not kept")
    back = Client(hub, "sub", clean_start=False, session_expiry_interval=100)
    assert [each.payload for each in back.first] == [b"kept"]
    assert hub.counters.lost == {Reason.NOT_CONNECTED: 1}


@pytest.mark.mqtt("MQTT-3.1.4-3", "MQTT-3.1.3-2", "MQTT-3.1.2-5", "MQTT-3.2.2-3")
def test_a_second_connection_takes_the_session_over():
    hub = new_hub()
    first = Client(hub, "c", session_expiry_interval=100)
    first.subscribe("t")
    second = Client(hub, "c", clean_start=False, session_expiry_interval=100)
    assert first.read()[0].reason_code is Gone.SESSION_TAKEN_OVER
    assert first.connection.closing
    assert second.connack.session_present
    Client(hub, "pub").publish("t")
    assert second.got() == [("t", b"x")]
    assert first.got() == []


@pytest.mark.mqtt("MQTT-3.1.2-4", "MQTT-3.1.4-4", "MQTT-3.2.2-2")
def test_a_clean_start_forgets_what_was():
    hub = new_hub()
    Client(hub, "c", session_expiry_interval=100).subscribe("t")
    again = Client(hub, "c")
    assert not again.connack.session_present
    Client(hub, "pub").publish("t")
    assert again.got() == []


@pytest.mark.mqtt("MQTT-3.1.2-7", "MQTT-3.1.2-8", "MQTT-3.14.4-3")
def test_a_will_is_sent_when_a_connection_is_lost_and_not_when_it_says_goodbye():
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("gone/#")
    will = mqtt5.Will("gone/c", payload=b"lost")
    Client(hub, "c", will=will).ask(mqtt5.DisconnectPacket())
    assert watcher.got() == []
    Client(hub, "c", will=will).connection.lost(0.0)
    assert watcher.got() == [("gone/c", b"lost")]
    Client(hub, "c", will=will).ask(mqtt5.DisconnectPacket(reason_code=Gone.DISCONNECT_WITH_WILL_MESSAGE))
    assert watcher.got() == [("gone/c", b"lost")]


@pytest.mark.mqtt("MQTT-3.1.3-9", "MQTT-3.1.2-8")
def test_a_delayed_will_is_not_sent_to_one_who_comes_back_in_time():
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("gone/#")
    options: dict[str, Any] = {
        "will": mqtt5.Will("gone/c", will_delay_interval=5),
        "session_expiry_interval": 60,
    }
    Client(hub, "c", **options).connection.lost(0.0)
    hub.tick(4.0)
    back = Client(hub, "c", now_s=4.0, clean_start=False, **options)
    hub.tick(6.0)
    assert watcher.got() == []
    back.connection.lost(10.0)
    hub.tick(15.0)
    assert watcher.got() == [("gone/c", b"")]


@pytest.mark.mqtt("MQTT-3.1.2-8")
def test_a_will_is_due_at_the_latest_when_the_session_ends():
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("gone/#")
    will = mqtt5.Will("gone/c", will_delay_interval=1000)
    Client(hub, "c", will=will, session_expiry_interval=2).connection.lost(0.0)
    hub.tick(1.0)
    assert watcher.got() == []
    hub.tick(2.0)
    assert watcher.got() == [("gone/c", b"")]


@pytest.mark.mqtt("MQTT-3.1.2-22", "MQTT-3.2.2-22")
def test_a_silent_client_is_hung_up_on_after_one_and_a_half_keep_alives():
    hub = new_hub()
    client = Client(hub, keep_alive=10)
    hub.tick(15.0)
    assert not client.connection.closing
    hub.tick(15.1)
    assert client.read()[0].reason_code is Gone.KEEP_ALIVE_TIMEOUT


@pytest.mark.mqtt("MQTT-3.3.1-5", "MQTT-3.3.1-6", "MQTT-3.3.1-7")
def test_the_last_retained_message_greets_a_new_subscriber():
    hub = new_hub()
    pub = Client(hub, "pub")
    for topic, payload in (("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"")):
        pub.publish(topic, payload, retain=True)
    sub = Client(hub, "sub")
    sub.subscribe("#")
    (found,) = sub.read()
    assert (found.topic, found.payload, found.retain) == ("a", b"2", True)


def test_retain_handling_says_when_a_subscriber_is_greeted():
    hub = new_hub()
    Client(hub, "pub").publish("a", b"1", retain=True)
    sub = Client(hub, "sub")
    handling = mqtt5.RetainHandling
    sub.subscribe("a", retain_handling=handling.SEND_NEVER)
    assert sub.got() == []
    sub.subscribe("a", retain_handling=handling.SEND_IF_SUBSCRIPTION_NOT_EXISTS)
    assert sub.got() == []  # it exists already
    sub.subscribe("a", retain_handling=handling.SEND_ALWAYS)
    assert sub.got() == [("a", b"1")]


@pytest.mark.mqtt("MQTT-3.3.4-2", "MQTT-3.3.4-3", "MQTT-3.3.4-4")
def test_a_client_gets_one_copy_with_the_best_quality_and_all_identifiers():
    hub = new_hub()
    sub = Client(hub, "sub")
    sub.subscribe("a/#", qos=2, subscription_id=1)
    sub.subscribe("a/+", qos=1, subscription_id=2)
    Client(hub, "pub").publish("a/b", qos=2)
    (found,) = sub.read()
    assert found.qos is mqtt5.QoS.EXACTLY_ONCE
    assert sorted(found.subscription_ids) == [1, 2]


def test_shared_subscribers_take_turns():
    hub = new_hub()
    clients = [Client(hub, f"s{number}") for number in range(3)]
    for client in clients:
        client.subscribe("$share/group/t")
    pub = Client(hub, "pub")
    for number in range(9):
        pub.publish("t", str(number).encode())
    counts = [client.got() for client in clients]
    assert [len(each) for each in counts] == [3, 3, 3]
    assert len({each for got in counts for each in got}) == 9


def test_goodbye_is_said_to_all():
    hub = new_hub()
    clients = [Client(hub, name) for name in "ab"]
    hub.shut_down(0.0)
    assert all(client.read()[0].reason_code is Gone.SERVER_SHUTTING_DOWN for client in clients)


def test_a_content_filter_lets_through_what_it_says_and_tells_id_and_age():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("cars", properties={"filter": "speed > 50 AND kind = 'car'", "max-delay": "5s"})
    pub.publish("cars", user_properties=[("speed", "61"), ("kind", "car")])
    pub.publish("cars", user_properties=[("speed", "49"), ("kind", "car")])
    pub.publish("cars", b'{"speed": 70, "kind": "car", "where": {"x": 1}}', content_type="application/json")
    first, second = sub.read()
    told = dict(first.user_properties)
    assert (told["speed"], told["$id"], told["$age"]) == ("61", "b1:1", "0")
    assert second.payload.startswith(b"{")


def test_what_is_too_late_for_its_bound_is_dropped_and_counted():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("t", properties={"max-delay": "1s"})
    sub.connection.flow.blocked = True
    pub.publish("t", b"stale")
    pub.now_s = 2.0
    pub.publish("t", b"fresh")
    sub.connection.flow.blocked = False
    hub.sessions["sub"].pump(2.5)
    assert sub.got() == [("t", b"fresh")]
    assert hub.counters.lost == {Reason.EXPIRED: 1}


def payloads(client: Client) -> list[bytes]:
    return [payload for _, payload in client.got()]


@pytest.mark.mqtt("MQTT-3.8.3-3")
def test_no_local_holds_for_each_subscription_of_its_own():
    hub = new_hub()
    client, other = Client(hub, "c"), Client(hub, "other")
    client.subscribe("a/#", qos=2, no_local=True, subscription_id=1)
    assert client.publish("a/b", b"mine") == []
    client.subscribe("a/+", qos=0, subscription_id=2)
    mine, _ = client.publish("a/b", b"mine", qos=1)
    assert (mine.subscription_ids, mine.qos.value) == ([2], 0)  # by the second alone
    other.publish("a/b", b"theirs", qos=1)
    (theirs,) = client.read()
    assert (sorted(theirs.subscription_ids), theirs.qos.value) == ([1, 2], 1)


@pytest.mark.mqtt("MQTT-3.8.3-3")
def test_no_local_holds_for_what_is_retained():
    hub = new_hub()
    client = Client(hub, "c")
    client.publish("t", b"mine", retain=True)
    client.subscribe("t", no_local=True)
    assert client.got() == []


@pytest.mark.mqtt("MQTT-3.3.1-12", "MQTT-3.3.1-13")
def test_a_message_that_is_retained_comes_without_the_flag_unless_a_subscription_asks_for_it():
    hub = new_hub()
    pub, plain, asked, both = (Client(hub, name) for name in ("pub", "plain", "asked", "both"))
    plain.subscribe("t")
    asked.subscribe("t", retain_as_published=True)
    both.subscribe("t")
    both.subscribe("#", retain_as_published=True)
    pub.publish("t", b"kept", retain=True)
    pub.publish("t", b"not kept")
    flags = [[each.retain for each in client.read()] for client in (plain, asked, both)]
    assert flags == [[False, False], [True, False], [True, False]]


@pytest.mark.mqtt("MQTT-3.3.2-6")
def test_a_retained_message_greets_with_what_is_left_of_its_life_and_not_after_it():
    hub = new_hub()
    Client(hub, "pub").publish("t", b"x", retain=True, message_expiry_interval=10)
    early, late = Client(hub, "early", now_s=4.0), Client(hub, "late", now_s=10.0)
    early.subscribe("t")
    late.subscribe("t")
    assert early.read()[0].message_expiry_interval == 6
    assert late.read() == []


def test_a_retained_message_that_is_older_than_a_subscriber_bears_does_not_greet_it():
    hub = new_hub()
    Client(hub, "pub").publish("t", b"old", retain=True)
    sub = Client(hub, "sub", now_s=60.0)
    sub.subscribe("t", properties={"max-delay": "10s"})
    assert sub.got() == []
    sub.subscribe("t", properties={"max-delay": "2m"})
    assert sub.got() == [("t", b"old")]


def test_shared_and_refused_subscriptions_are_not_greeted():
    access_control = AccessControl(
        anonymous=True, access=AccessList.read("topic readwrite a/#\ntopic write b", "list")
    )
    hub = new_hub(access_control=access_control)
    pub, sub = Client(hub, "pub"), Client(hub, "sub")
    for topic in ("a/b", "b"):
        pub.publish(topic, retain=True)
    sub.subscribe("$share/g/#")
    assert sub.got() == []
    sub.subscribe("#")
    assert sub.got() == [("a/b", b"x")]


def test_more_retained_than_there_is_room_for_is_refused_and_counted():
    hub = new_hub(retained_max=1)
    pub = Client(hub, "pub")
    pub.publish("a", retain=True)
    (ack,) = pub.publish("b", qos=1, retain=True)
    assert ack.reason_code is mqtt5.PubAckReasonCode.QUOTA_EXCEEDED
    assert hub.counters.lost == {Reason.QUEUE_FULL: 1}


@pytest.mark.mqtt("MQTT-3.3.2-5", "MQTT-3.3.2-6")
def test_a_message_that_expired_while_it_waited_is_not_delivered():
    hub = new_hub()
    sub = Client(hub, "sub", session_expiry_interval=100)
    sub.subscribe("t", qos=1)
    sub.connection.lost(0.0)
    pub = Client(hub, "pub")
    pub.publish("t", b"short", qos=1, message_expiry_interval=5)
    pub.publish("t", b"long", qos=1, message_expiry_interval=50)
    back = Client(hub, "sub", now_s=8.0, clean_start=False)
    assert [(each.payload, each.message_expiry_interval) for each in back.first] == [(b"long", 42)]
    assert hub.counters.lost == {Reason.EXPIRED: 1}


@pytest.mark.mqtt("MQTT-3.1.2-15")
def test_a_will_keeps_its_flag_its_quality_and_a_life_that_begins_when_it_is_sent():
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("gone", qos=1, retain_as_published=True)
    will = mqtt5.Will(
        "gone",
        payload=b"lost",
        qos=mqtt5.QoS.AT_LEAST_ONCE,
        retain=True,
        message_expiry_interval=10,
        will_delay_interval=5,
    )
    Client(hub, "c", will=will, session_expiry_interval=60).connection.lost(0.0)
    hub.tick(5.0)
    (found,) = watcher.read()
    assert (found.retain, found.qos.value, found.message_expiry_interval) == (True, 1, 10)
    late = Client(hub, "late", now_s=14.0)
    late.subscribe("gone")
    assert late.read()[0].message_expiry_interval == 1


def test_a_topic_with_more_levels_than_allowed_is_refused():
    client, refused = Client(new_hub()), mqtt5.PubAckReasonCode.TOPIC_NAME_INVALID
    assert client.publish("/" * (LEVELS_MAX - 1), qos=1)[0].reason_code is not refused
    assert client.publish("/" * LEVELS_MAX, qos=1)[0].reason_code is refused
    assert client.publish("a" * LEVELS_MAX, qos=1)[0].reason_code is not refused


def test_a_will_that_its_client_may_not_publish_is_refused():
    access_control = AccessControl(anonymous=True, access=AccessList.read("topic read #", "list"))
    hub = new_hub(access_control=access_control)
    for topic in ("gone", "$SYS/gone"):
        Client(hub, "c", will=mqtt5.Will(topic)).connection.lost(0.0)
    assert hub.counters.lost == {Reason.REFUSED: 2}


def test_a_clean_start_is_the_end_of_the_old_session_and_its_will_is_due():
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("gone")
    will = mqtt5.Will("gone", will_delay_interval=50)
    Client(hub, "c", will=will, session_expiry_interval=60).connection.lost(0.0)
    Client(hub, "c")
    assert len(watcher.got()) == 1


@pytest.mark.mqtt("MQTT-3.1.3-9")
def test_a_client_that_takes_over_its_own_session_in_time_spares_the_will():
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("gone")
    will = mqtt5.Will("gone", will_delay_interval=50)
    Client(hub, "c", will=will, session_expiry_interval=60)
    Client(hub, "c", clean_start=False)
    hub.tick(100.0)
    assert watcher.got() == []


def test_a_will_does_not_reach_the_session_that_ends_with_it():
    hub = new_hub()
    client = Client(hub, "c", will=mqtt5.Will("gone"))
    client.subscribe("gone", qos=1)
    client.connection.lost(0.0)
    assert not hub.counters.lost


@pytest.mark.mqtt("MQTT-4.8.2-5")
def test_what_a_departed_member_of_a_share_did_not_get_goes_to_another():
    hub = new_hub()
    pub, left = Client(hub, "pub"), Client(hub, "left", session_expiry_interval=10, receive_max=2)
    left.subscribe("$share/g/t", qos=2)
    for number, qos in enumerate((1, 2, 1, 2)):
        pub.publish("t", str(number).encode(), qos=qos, packet_id=number + 1)
    assert payloads(left) == [b"0", b"1"]
    stays = Client(hub, "stays")
    stays.subscribe("$share/g/t", qos=2)
    left.connection.lost(0.0)
    hub.tick(10.0)
    assert payloads(stays) == [b"0", b"2", b"3"]  # not b"1", of which nobody may have two [MQTT-4.8.2-5]
    assert hub.counters.lost == {Reason.SESSION_ENDED: 1}


def test_what_waits_in_a_session_that_ends_is_counted():
    hub = new_hub()
    sub = Client(hub, "sub", session_expiry_interval=10)
    sub.subscribe("t", qos=1)
    sub.connection.lost(0.0)
    Client(hub, "pub").publish("t", qos=1)
    hub.tick(10.0)
    assert hub.counters.lost == {Reason.SESSION_ENDED: 1}


def test_a_name_that_nobody_proved_gives_no_rights_here_either():
    access = AccessList.read("topic readwrite open\nuser ann\ntopic readwrite ann/#", "list")
    hub = new_hub(access_control=AccessControl(anonymous=True, access=access))
    client = Client(hub, "c", username="ann", password=b"made up")
    assert client.subscribe("ann/#").reason_codes[0].value == 0x87
    assert client.publish("ann/x", qos=1)[0].reason_code is mqtt5.PubAckReasonCode.NOT_AUTHORIZED
    client.subscribe("#")
    (got,) = client.publish("open")
    assert got.topic == "open"


def test_a_plain_message_is_encoded_once_for_all():
    hub = new_hub()
    subs = [Client(hub, f"s{number}") for number in range(3)]
    for sub in subs:
        sub.subscribe("t")
    Client(hub, "pub").publish("t", b"x" * 100)
    first, *others = (sub.connection.take_outbox() for sub in subs)
    assert all(each is first for each in others)


def test_many_idle_sessions_cost_nothing_at_a_tick():
    hub = new_hub()
    for number in range(200):
        Client(hub, f"c{number}", keep_alive=1000, session_expiry_interval=10**6).connection.lost(0.0)
    seen: list[str] = []
    hub._end = lambda session, now_s: seen.append(session.client_id)  # type: ignore[method-assign]
    hub.tick(1.0)
    assert not seen
    assert not len(hub._silent)
    assert len(hub._ending) == 200


def test_thousands_of_subscriptions_of_an_ended_session_leave_in_turns_and_get_nothing_meanwhile():
    hub = new_hub()
    before = hub.memory.taken_bytes
    patterns = [f"t/{number}/+" for number in range(3 * REMOVED_AT_ONCE)]
    Client(hub, "c1").subscribe(*patterns, qos=1)
    client = Client(hub, "c1")  # a clean start ends the session; most of its subscriptions are still there
    client.subscribe(patterns[-1], "#", qos=1)
    assert hub.held[0] > 2
    publisher = Client(hub, "c2")
    (puback,) = publisher.publish("t/1/x", qos=1)
    publisher.publish(f"t/{3 * REMOVED_AT_ONCE - 1}/x", qos=1)
    assert puback.reason_code.value == 0
    assert [topic for topic, _ in client.got()] == ["t/1/x", f"t/{3 * REMOVED_AT_ONCE - 1}/x"]
    for second in range(4):
        hub.tick(float(second))
    assert hub.held[0] == 2
    client.send(mqtt5.DisconnectPacket())
    publisher.send(mqtt5.DisconnectPacket())
    assert hub.memory.taken_bytes == before
