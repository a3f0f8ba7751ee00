"""Does a client find after a crash what it was promised before?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.keeping import EPOCH_S, Shelf, kept_hub
from tests.broker.talking import Client

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.durability.restore import RestoringError

AN_HOUR = {"session_expiry_interval": 3600}
BACK = {"clean_start": False, **AN_HOUR}


def test_a_subscription_comes_back_with_all_that_was_said():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    wish = {"filter": "speed > 50", "max-delay": "5s", "price": "3"}
    sub = Client(hub, "sub", **AN_HOUR)
    sub.subscribe("t/+", qos=1, properties=wish, subscription_id=9, retain_as_published=True)
    sub.subscribe("$share/g/u", qos=2)
    sub.subscribe("sub/own", qos=1, no_local=True)
    store.commit()
    again, _ = kept_hub(shelf)
    old, new = hub.sessions["sub"], again.sessions["sub"]
    assert list(new.subscriptions) == sorted(old.subscriptions)
    for written, grant in new.subscriptions.items():
        for name in ("pattern", "group", "qos", "no_local", "retain_as_published", "identifier", "options"):
            assert getattr(grant, name) == getattr(old.subscriptions[written], name), (written, name)
    pub = Client(again, "pub")
    pub.publish("t/a", b"slow", qos=1, user_properties=[("speed", "49")])
    pub.publish("t/a", b"fast", qos=1, user_properties=[("speed", "51")])
    back = Client(again, "sub", **BACK)
    assert back.connack.session_present
    (packet,) = back.first
    assert (packet.payload, packet.subscription_ids) == (b"fast", [9])


def test_what_waits_and_what_is_in_flight_comes_in_order_and_under_its_old_id():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    sub = Client(hub, "sub", receive_max=2, **AN_HOUR)
    sub.subscribe("t", qos=2)
    for number in range(4):
        Client(hub, "pub").publish("t", str(number).encode(), qos=1 + number % 2)
    before = sub.read()
    store.commit()
    again, _ = kept_hub(shelf)
    back = Client(again, "sub", **BACK)
    assert [each.payload for each in back.first] == [b"0", b"1", b"2", b"3"]
    assert [each.packet_id for each in back.first[:2]] == [each.packet_id for each in before]
    assert [each.duplicate for each in back.first] == [True, True, False, False]
    assert len({each.packet_id for each in back.first}) == 4


def test_what_the_client_has_is_released_and_not_sent_again():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    sub = Client(hub, "sub", **AN_HOUR)
    sub.subscribe("t", qos=2)
    Client(hub, "pub").publish("t", qos=2)
    (packet,) = sub.read()
    sub.send(mqtt5.PubRecPacket(packet.packet_id))
    store.commit()
    again, store = kept_hub(shelf)
    back = Client(again, "sub", **BACK)
    (release,) = back.first
    assert isinstance(release, mqtt5.PubRelPacket)
    assert release.packet_id == packet.packet_id
    back.send(mqtt5.PubCompPacket(packet.packet_id))
    store.commit()
    assert shelf.counts() == {"sessions": 1, "subscriptions": 1}


def test_a_publication_of_quality_2_that_was_taken_in_is_not_taken_in_twice():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "sub", **AN_HOUR).subscribe("t", qos=2)
    Client(hub, "pub", **AN_HOUR).publish("t", qos=2, packet_id=5)
    store.commit()
    again, _ = kept_hub(shelf)
    pub = Client(again, "pub", **BACK)
    (answer,) = pub.publish("t", qos=2, packet_id=5, duplicate=True)
    assert isinstance(answer, mqtt5.PubRecPacket)
    assert len(Client(again, "sub", **BACK).first) == 1


def test_what_was_not_committed_never_was():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    sub = Client(hub, "sub", **AN_HOUR)
    store.commit()
    sub.subscribe("t", qos=1)
    again, _ = kept_hub(shelf)
    assert again.sessions["sub"].subscriptions == {}


def test_time_goes_on_while_the_server_is_down():
    shelf = Shelf()
    hub, store = kept_hub(shelf, now_s=1000.0)
    sub = Client(hub, "sub", now_s=1000.0, **AN_HOUR)
    sub.subscribe("a", qos=1, properties={"max-delay": "20s"})
    sub.subscribe("b", qos=1)
    sub.connection.lost(1000.0)
    pub = Client(hub, "pub", now_s=1000.0)
    for topic in ("a", "b"):
        pub.publish(topic, b"young", qos=1, message_expiry_interval=100)
        pub.publish(topic, b"brief", qos=1, message_expiry_interval=8)
    store.commit()
    # The new server's own clock begins elsewhere; 10 s have passed on the wall.
    again, _ = kept_hub(shelf, now_s=5.0, wall_s=EPOCH_S + 1010.0)
    back = Client(again, "sub", now_s=6.0, **BACK)
    assert [(each.topic, each.payload) for each in back.first] == [("a", b"young"), ("b", b"young")]
    assert [each.message_expiry_interval for each in back.first] == [89, 89]
    assert dict(back.first[0].user_properties)["$age"] == "11000"
    late, _ = kept_hub(shelf, now_s=5.0, wall_s=EPOCH_S + 1030.0)
    assert [each.topic for each in Client(late, "sub", now_s=5.0, **BACK).first] == ["b"]
    gone, _ = kept_hub(shelf, now_s=5.0, wall_s=EPOCH_S + 1000.0 + 3601.0)
    assert not gone.sessions
    assert shelf.counts() == {}


def test_a_clock_that_went_back_makes_nothing_younger_than_new():
    shelf = Shelf()
    hub, store = kept_hub(shelf, now_s=1000.0)
    Client(hub, "sub", now_s=1000.0, **AN_HOUR).subscribe("a", qos=1, properties={"price": "1"})
    Client(hub, "pub", now_s=1000.0).publish("a", qos=1)
    store.commit()
    again, _ = kept_hub(shelf, now_s=5.0, wall_s=EPOCH_S)
    (packet,) = Client(again, "sub", now_s=5.0, **BACK).first
    assert dict(packet.user_properties)["$age"] == "0"


def test_who_was_connected_is_gone_since_the_restart_and_stays_so():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "sub", **AN_HOUR)
    store.commit()
    kept_hub(shelf, now_s=5000.0)
    again, _ = kept_hub(shelf, now_s=8000.0)
    assert "sub" in again.sessions
    again, _ = kept_hub(shelf, now_s=8601.0)
    assert not again.sessions


def test_a_session_for_ever_has_no_end():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "sub", session_expiry_interval=0xFFFFFFFF)
    store.commit()
    again, _ = kept_hub(shelf, now_s=1e9)
    assert "sub" in again.sessions
    assert not len(again._ending)


def test_retained_messages_come_back():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    pub = Client(hub, "pub")
    pub.publish("t/a", b"1", retain=True)
    pub.publish("t/b", b"2", qos=2, retain=True, topic_alias=1)
    store.commit()
    again, store = kept_hub(shelf)
    sub = Client(again, "sub")
    sub.subscribe("t/#")
    assert sorted(sub.got()) == [("t/a", b"1"), ("t/b", b"2")]
    Client(again, "pub").publish("t/a", b"", retain=True)
    store.commit()
    assert shelf.counts() == {"retained": 1, "publications": 1}


@pytest.mark.parametrize("was_connected", [True, False])
def test_a_will_is_spoken_in_its_time(was_connected):
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    will = mqtt5.Will("w", payload=b"gone", qos=mqtt5.QoS.AT_LEAST_ONCE, will_delay_interval=20)
    client = Client(hub, "c", will=will, **AN_HOUR)
    Client(hub, "watcher", **AN_HOUR).subscribe("w", qos=1)
    if not was_connected:
        client.connection.lost(5.0)
    store.commit()
    again, store = kept_hub(shelf, now_s=10.0)
    due_s = 30.0 if was_connected else 25.0
    again.tick(due_s - 1.0)
    assert Client(again, "watcher", now_s=due_s - 1.0, **BACK).first == []
    again.tick(due_s)
    (packet,) = Client(again, "watcher", now_s=due_s, **BACK).first
    assert (packet.topic, packet.payload) == ("w", b"gone")
    store.commit()
    assert shelf.count("wills") == 0


def test_who_comes_back_takes_its_will_back():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "c", will=mqtt5.Will("w", will_delay_interval=20), **AN_HOUR)
    store.commit()
    again, store = kept_hub(shelf)
    Client(again, "c", **BACK)
    store.commit()
    assert (len(again._wills), shelf.count("wills")) == (0, 0)


def test_what_a_member_of_a_shared_subscription_did_not_get_goes_to_another_after_all():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "s1", session_expiry_interval=50).subscribe("$share/g/t", qos=1)
    Client(hub, "pub").publish("t", qos=1)
    hub.sessions["s1"].connection.lost(0.0)  # type: ignore[union-attr]
    Client(hub, "s2", **AN_HOUR).subscribe("$share/g/t", qos=1)
    store.commit()
    again, store = kept_hub(shelf, now_s=51.0)
    assert set(again.sessions) == {"s2"}
    assert [each.payload for each in Client(again, "s2", now_s=51.0, **BACK).first] == [b"x"]
    store.commit()
    assert shelf.count("deliveries") == 1


def test_users_and_rights_hold_after_a_restart():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "sub", **AN_HOUR).subscribe("a", "b", qos=1)
    store.commit()
    shelf.tables["sessions"][("sub",)] = ("sub", "ann", 3600.0, None)
    access = AccessList.read("topic readwrite a\nuser ann\ntopic read b\n", "list")
    again, _ = kept_hub(shelf, access_control=AccessControl(anonymous=True, access=access))
    assert again.sessions["sub"].user == "ann"
    for topic in ("a", "b"):
        Client(again, "pub").publish(topic, qos=1)
    assert len(again.sessions["sub"]) == 0  # nobody may write to b, and ann may not read a
    refused = Client(again, "sub", **BACK)
    assert refused.connack.reason_code.value == 0x87  # another user's


def busy_shelf() -> Shelf:
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    for name in ("s1", "s2"):
        Client(hub, name, **AN_HOUR).subscribe("t", "u", qos=1)
        hub.sessions[name].connection.lost(0.0)  # type: ignore[union-attr]
    Client(hub, "pub").publish("t", b"x" * 1000, qos=1)
    Client(hub, "pub").publish("t/r", b"x" * 1000, qos=1, retain=True)
    Client(hub, "pub").publish("t/s", b"x" * 1000, qos=1, retain=True)
    store.commit()
    return shelf


@pytest.mark.parametrize(
    ("limit", "most", "named"),
    [
        ("sessions_max", 1, "raise sessions in"),
        ("subscriptions_max", 1, "raise subscriptions in"),
        ("queue_bytes_max", 1000, "raise queue_size in"),
        ("retained_max", 1, "raise retained or retained_size in"),
        ("retained_bytes_max", 1500, "raise retained or retained_size in"),
        ("memory_bytes_max", 10_000, "raise memory in"),
    ],
)
def test_more_than_the_limits_allow_is_not_thrown_away(limit, most, named):
    shelf = busy_shelf()
    before = shelf.counts()
    with pytest.raises(RestoringError, match=named):
        kept_hub(shelf, **{limit: most})
    assert shelf.counts() == before
    hub, _ = kept_hub(shelf)
    assert len(hub.sessions) == 2


def test_a_shorter_session_expiry_holds_for_what_is_loaded():
    shelf = busy_shelf()
    hub, _ = kept_hub(shelf, session_expiry_s_max=60.0)
    assert {each.expiry_s for each in hub.sessions.values()} == {60.0}


@pytest.mark.parametrize(
    ("table", "change", "said"),
    [
        (
            "publications",
            lambda row: (row[0], b"\x30\x05", *row[2:]),
            "publications 1: not one whole PUBLISH",
        ),
        ("publications", lambda row: (row[0], b"\x30\x03\x00\x01\xff", *row[2:]), "publications 1: "),
        ("deliveries", lambda row: (*row[:2], 99, *row[3:]), "deliveries 1: there is no publication 99"),
        ("deliveries", lambda row: (row[0], "who", *row[2:]), "deliveries 1: there is no session of 'who'"),
        ("subscriptions", lambda row: (*row[:6], '[["filter", "x >"]]'), r"subscriptions \('s1', 't'\): "),
        ("subscriptions", lambda row: (row[0], "a/#/b", *row[2:]), r"subscriptions \('s1', 'a/#/b'\): "),
        ("retained", lambda row: (row[0], 99), "retained 't/r': there is no publication 99"),
    ],
)
def test_what_cannot_be_read_is_named(table, change, said):
    shelf = busy_shelf()
    key = min(shelf.tables[table])
    shelf.tables[table][key] = change(shelf.tables[table][key])
    with pytest.raises(RestoringError, match=f"shelf: {said}"):
        kept_hub(shelf)
