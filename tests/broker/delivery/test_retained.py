"""Is the last word on each topic kept, within bounds, until it is void or taken back?"""

from __future__ import annotations

import mqtt5
from tests.broker.talking import Client, new_hub

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.retained import Retained
from betimes.broker.delivery.session import DRAWN_AT_ONCE


def said(topic: str, payload: bytes = b"x", *, expiry_s: int | None = None) -> Publication:
    packet = mqtt5.PublishPacket(topic, payload, retain=True, message_expiry_interval=expiry_s)
    return Publication(packet, topic, born_s=0.0)


def payloads(retained: Retained, pattern: str, now_s: float = 0.0) -> list[bytes]:
    return sorted(each.packet.payload for each in retained.meeting(pattern, now_s))


def test_the_newest_takes_the_place_of_the_older_and_an_empty_one_removes_it():
    retained = Retained(10, 10_000)
    assert retained.keep(said("a/b", b"1"))
    assert retained.keep(said("a/b", b"2"))
    assert retained.keep(said("a/c", b"3"))
    assert payloads(retained, "a/+") == [b"2", b"3"]
    assert retained.keep(said("a/b", b""))
    assert retained.keep(said("nothing/there", b""))
    assert payloads(retained, "#") == [b"3"]


def test_what_has_become_void_is_forgotten():
    retained = Retained(10, 10_000)
    retained.keep(said("a", expiry_s=5))
    assert payloads(retained, "a", 4.9) == [b"x"]
    assert payloads(retained, "a", 5.0) == []
    assert not len(retained)


def test_there_is_room_for_so_many():
    retained = Retained(1, 10_000)
    assert retained.keep(said("a"))
    assert not retained.keep(said("b"))
    assert retained.keep(said("a", b"new"))
    assert retained.keep(said("a", b""))
    assert retained.keep(said("b"))


def test_there_is_room_for_so_much_and_it_is_given_back():
    retained = Retained(100, 3_000)
    for _ in range(20):
        assert retained.keep(said("a", b"x" * 2_000))
        assert not retained.keep(said("b", b"x" * 2_000))
        assert retained.keep(said("a", b""))
    assert retained.keep(said("b", b"x" * 2_000))


def test_what_takes_the_place_of_what_is_noted():
    noted: list[tuple[Publication | None, Publication | None]] = []
    retained = Retained(9, 10_000, lambda old, new: noted.append((old, new)))
    first, second, empty = said("a", b"1"), said("a", b"2"), said("a", b"")
    for each in (first, second, empty, empty):
        retained.keep(each)
    assert noted == [(None, first), (first, second), (second, None)]


def test_deep_topics_take_of_the_room_what_they_take_of_memory():
    def kept_of(topic: str) -> int:
        retained = Retained(10_000, 1_000_000)
        packets = (mqtt5.PublishPacket(f"{number}{topic}", b"x", retain=True) for number in range(10_000))
        return sum(retained.keep(Publication(each, each.topic, born_s=0.0)) for each in packets)

    assert kept_of("/a" * 100) < kept_of("") / 20


def hub_with_retained(count: int) -> Hub:
    hub = new_hub()
    publisher = Client(hub, "publisher")
    for number in range(count):
        publisher.publish(f"a/{number}", b"x", retain=True)
    return hub


def read_all(client: Client) -> list[str]:
    """Return the topics of all that comes, in as many turns as it takes."""
    topics = []
    while True:
        topics += [each.topic for each in client.read() if isinstance(each, mqtt5.PublishPacket)]
        if not client.connection.flow.blocked:
            return topics
        client.connection.drained(0.0)


def test_many_retained_messages_go_out_in_turns_that_others_have_between():
    hub = hub_with_retained(3 * DRAWN_AT_ONCE)
    ann = Client(hub, "ann")
    topics = [mqtt5.TopicFilter(pattern) for pattern in ("a/+", "#")]
    ann.send(mqtt5.SubscribePacket(1, topics))
    first = [each for each in ann.read() if isinstance(each, mqtt5.PublishPacket)]
    assert len(first) <= DRAWN_AT_ONCE
    assert ann.connection.flow.blocked
    Client(hub, "bob").publish("a/live", b"now")
    ann.connection.drained(0.0)
    rest = read_all(ann)
    assert "a/live" in rest[: DRAWN_AT_ONCE + 1]
    assert len(first) + len(rest) == 2 * 3 * DRAWN_AT_ONCE + 1


def test_what_is_retained_or_unsubscribed_meanwhile_is_not_sent_twice_or_at_all():
    hub = hub_with_retained(2 * DRAWN_AT_ONCE)
    ann = Client(hub, "ann")
    ann.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a/+")]))
    before = [each.topic for each in ann.read() if isinstance(each, mqtt5.PublishPacket)]
    later = next(f"a/{number}" for number in range(2 * DRAWN_AT_ONCE) if f"a/{number}" not in before)
    Client(hub, "bob").publish(later, b"newer", retain=True)
    ann.connection.drained(0.0)
    ann.send(mqtt5.UnsubscribePacket(2, ["a/+"]))
    after = read_all(ann)
    assert after.count(later) == 1
    assert len(before) + len(after) <= 2 * DRAWN_AT_ONCE + 1
