"""Is what must survive on the shelf after a commit, and nothing that need not?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.keeping import EPOCH_S, Shelf, kept_hub
from tests.broker.talking import Client

from betimes.broker.durability.store import NUMBERS_SET_ASIDE, SET_ASIDE

AN_HOUR = {"session_expiry_interval": 3600}


def test_only_sessions_that_outlive_their_connection_are_kept():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "stays", **AN_HOUR).subscribe("a/#", qos=1)
    Client(hub, "goes").subscribe("a/#", qos=1)
    Client(hub, "pub").publish("a/b", qos=1)
    store.commit()
    assert shelf.counts() == {"sessions": 1, "subscriptions": 1, "deliveries": 1, "publications": 1}


def test_a_publication_is_kept_once_for_all_and_goes_with_the_last():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    subscribers = [Client(hub, f"s{number}", **AN_HOUR) for number in range(3)]
    for each in subscribers:
        each.subscribe("t", qos=1)
    Client(hub, "pub").publish("t", qos=1)
    store.commit()
    assert (shelf.count("publications"), shelf.count("deliveries")) == (1, 3)
    for left, each in zip((2, 1, 0), subscribers, strict=True):
        (packet,) = each.read()
        each.send(mqtt5.PubAckPacket(packet.packet_id))
        store.commit()
        assert (shelf.count("publications"), shelf.count("deliveries")) == (min(left, 1), left)


def test_what_has_quality_0_is_not_kept():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "sub", receive_max=1, **AN_HOUR).subscribe("t", qos=1)
    store.commit()
    commits = shelf.commits
    pub = Client(hub, "pub")
    pub.publish("t")
    assert not store.changed
    pub.publish("t", qos=1)
    pub.publish("t", qos=1)  # waits: the client takes one at a time
    pub.publish("t")  # waits behind it
    store.commit()
    assert len(hub.sessions["sub"]) == 2
    assert (shelf.count("deliveries"), shelf.commits) == (2, commits + 1)


def test_a_session_that_ends_leaves_nothing_behind():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    will = mqtt5.Will("w", will_delay_interval=9)
    sub = Client(hub, "sub", will=will, receive_max=1, **AN_HOUR)
    sub.subscribe("t", "u", qos=2)
    sub.publish("elsewhere", qos=2)
    for _ in range(2):
        Client(hub, "pub").publish("t", qos=2)
    store.commit()
    expected = {"sessions": 1, "subscriptions": 2, "deliveries": 2, "publications": 2, "wills": 1}
    assert shelf.counts() == expected | {"incoming": 1}
    sub.connection.lost(1.0)
    hub.tick(5000.0)
    store.commit()
    assert shelf.counts() == {}


def test_a_session_that_shall_end_with_its_next_connection_is_kept_no_more():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "sub", **AN_HOUR).subscribe("t", qos=1)
    Client(hub, "pub").publish("t", qos=1)
    store.commit()
    again = Client(hub, "sub", clean_start=False)
    assert again.connack.session_present
    assert [each.payload for each in again.first] == [b"x"]
    store.commit()
    assert shelf.counts() == {}
    Client(hub, "pub").publish("t", qos=1)
    assert not store.changed


def test_what_is_unsubscribed_released_or_too_late_is_kept_no_more():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    sub = Client(hub, "sub", receive_max=1, **AN_HOUR)
    sub.subscribe("t", "u", qos=1)
    sub.ask(mqtt5.UnsubscribePacket(3, ["u"]))
    sub.publish("elsewhere", qos=2, packet_id=5)
    sub.publish("elsewhere", qos=2, packet_id=6)
    sub.ask(mqtt5.PubRelPacket(5))
    pub = Client(hub, "pub")
    pub.publish("t", qos=1)
    pub.publish("t", qos=1, message_expiry_interval=2)
    store.commit()
    assert shelf.counts() == {
        "sessions": 1,
        "subscriptions": 1,
        "incoming": 1,
        "deliveries": 2,
        "publications": 2,
    }
    sub.now_s = 3.0
    sub.send(mqtt5.PubAckPacket(1))
    store.commit()
    assert (shelf.count("deliveries"), shelf.count("publications")) == (0, 0)


def test_the_newest_retained_message_of_a_topic_is_kept_with_any_quality():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    pub = Client(hub, "pub")
    for payload in (b"old", b"new"):
        pub.publish("t", payload, retain=True)
    pub.publish("u", b"brief", retain=True, message_expiry_interval=1)
    store.commit()
    assert shelf.counts() == {"retained": 2, "publications": 2}
    pub.publish("t", b"", retain=True)
    assert not list(hub.publishing.retained.meeting("#", 2.0))
    store.commit()
    assert shelf.counts() == {}


def test_a_will_is_kept_until_it_was_spoken_or_taken_back():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    will = mqtt5.Will("w", will_delay_interval=9)
    client = Client(hub, "c", will=will, **AN_HOUR)
    store.commit()
    (row,) = shelf.tables["wills"].values()
    assert row[2:] == (9, None)
    client.connection.lost(1.0)
    store.commit()
    (row,) = shelf.tables["wills"].values()
    assert row[2:] == (9, EPOCH_S + 10.0)
    hub.tick(10.0)
    store.commit()
    assert shelf.counts() == {"sessions": 1}
    Client(hub, "c", clean_start=False, will=will, **AN_HOUR).send(mqtt5.DisconnectPacket())
    store.commit()
    assert shelf.counts() == {"sessions": 1}


def test_numbers_are_set_aside_before_they_run_out():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    first = hub.publishing.next_number
    assert first == EPOCH_S * 1e6
    assert shelf.tables["facts"][SET_ASIDE,] == (SET_ASIDE, first + NUMBERS_SET_ASIDE)
    store.set_numbers_aside(first + NUMBERS_SET_ASIDE // 2)
    assert not store.changed
    store.set_numbers_aside(first + NUMBERS_SET_ASIDE // 2 + 1)
    store.commit()
    assert shelf.tables["facts"][SET_ASIDE,][1] == first + NUMBERS_SET_ASIDE // 2 + 1 + NUMBERS_SET_ASIDE


def test_numbers_go_up_by_one_from_the_first():
    hub, _ = kept_hub(Shelf())
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("t", properties={"price": "1"})
    first = hub.publishing.next_number
    for _ in range(3):
        pub.publish("t")
    given = [dict(each.user_properties)["$id"] for each in sub.read()]
    assert given == [f"b1:{first + step}" for step in range(3)]


def test_numbers_never_repeat_even_if_the_clock_goes_back():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    Client(hub, "sub", **AN_HOUR).subscribe("t", properties={"price": "1"})
    Client(hub, "pub").publish("t")
    store.commit()
    again, _ = kept_hub(shelf, wall_s=1.0)
    assert again.publishing.next_number >= hub.publishing.next_number
    later, _ = kept_hub(shelf, wall_s=2 * EPOCH_S)
    assert later.publishing.next_number == 2 * EPOCH_S * 1e6


def test_a_table_more_is_committed_with_all_others():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    custody = store.table("custody", key="origin TEXT, number INTEGER", values="packet BLOB")
    commits = shelf.commits
    custody.put(("b2", 1), (b"x",))
    Client(hub, "sub", **AN_HOUR)
    store.commit()
    assert (shelf.count("custody"), shelf.count("sessions"), shelf.commits) == (1, 1, commits + 1)
    store.commit()
    assert shelf.commits == commits + 1


def test_what_hinders_a_commit_is_raised():
    def refuse(_changes):
        raise OSError("full")

    hub, store = kept_hub(Shelf())
    store._write = refuse
    Client(hub, "sub", **AN_HOUR)
    with pytest.raises(OSError, match="full"):
        store.commit()
