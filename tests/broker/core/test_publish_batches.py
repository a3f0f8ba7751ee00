"""Is what goes through in one go the same as what goes through one by one?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.talking import Client, new_connection, new_hub

from betimes.broker.observe.event_recorder import EventRecorder
from betimes.model.buffer_settings import BufferSettings
from betimes.model.telemetry import Published
from betimes.mqtt.codec import Codec
from betimes.mqtt.packet_batch import PacketBatch
from betimes.scheduling.recorder import Recorder

packets = st.builds(
    mqtt5.PublishPacket,
    st.sampled_from(["a", "b", "a/b"]),
    st.sampled_from([b"", b"x", b"yy", b"z" * 130, b"w" * 20_000]),
    retain=st.booleans() | st.just(False),
    user_properties=st.sampled_from([[], [], [], [("speed", "61")]]),
)


def rows(count: int, payload: bytes = b"x", topic: str = "a") -> bytes:
    return b"".join(mqtt5.PublishPacket(topic, payload + b"%d" % number).write() for number in range(count))


def watched(stream: bytes, *, bundles: bool, every: int, cut: int, who: int) -> tuple[Any, ...]:
    """Publish a stream to several subscribers; return all that can be seen of it."""
    records: list[Any] = []
    witness = EventRecorder("b1", Recorder(records.append, every=every))
    hub = new_hub(buffer=BufferSettings(), recorder=witness)
    subscribers = [
        Client(hub, "plain"),
        Client(hub, "small", max_packet_size=150),
        Client(hub, "wild"),
        Client(hub, "own"),
    ][:who]
    for client, pattern in zip(subscribers, ("a", "a", "+", "b"), strict=False):
        client.subscribe(pattern)
    publisher = Client(hub, "publisher")
    publisher.connection.wire.bundles = bundles
    for start in range(0, len(stream), cut):
        publisher.connection.receive(stream[start : start + cut], 1.0)
    got = [[(each.topic, bytes(each.payload)) for each in client.read()] for client in subscribers]
    counters = hub.counters
    written = [(each.number, each.topic, each.wanted) for each in records if isinstance(each, Published)]
    counted = (
        counters.received,
        counters.sent,
        counters.packets_received,
        counters.packets_sent,
        dict(counters.lost),
    )
    assert hub.replay is not None
    found, gaps = hub.replay.missed("#", {})
    kept = [(each.number, each.topic, bytes(each.packet.payload)) for each in found]
    return got, written, counted, counters.bytes_sent, kept, gaps, hub.replay.last_number


@given(st.lists(packets, max_size=40), st.integers(1, 5), st.integers(1, 50_000), st.integers(0, 4))
def test_nobody_can_tell_a_batch_from_its_packets(sent, every, cut, who):
    stream = b"".join(packet.write() for packet in sent)
    one_by_one = watched(stream, bundles=False, every=every, cut=cut, who=who)
    assert watched(stream, bundles=True, every=every, cut=cut, who=who) == one_by_one


def test_batches_of_old_clients_are_forwarded_too():
    """In bytes of MQTT 3.1.1, by hand: CONNECT, SUBSCRIBE to t, and PUBLISH of one letter to t."""
    hub = new_hub(buffer=BufferSettings())
    connect = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01"
    subscriber, publisher = (new_connection(hub) for _ in range(2))
    subscriber.receive(connect + b"s", 0.0)
    publisher.receive(connect + b"p", 0.0)
    subscriber.receive(b"\x82\x06\x00\x01\x00\x01t\x00", 0.0)
    subscriber.take_outbox()
    new = Client(hub, "new")
    new.subscribe("t")
    data = b"".join(b"\x30\x04\x00\x01t%c" % letter for letter in b"abcdefgh")
    publisher.receive(data, 1.0)
    publisher.receive(data, 1.0)
    assert subscriber.take_outbox() == data * 2
    assert [bytes(each.payload) for each in new.read()] == [b"%c" % letter for letter in b"abcdefgh"] * 2
    new.connection.lost(2.0)
    sent = hub.counters.packets_sent
    publisher.receive(data, 3.0)  # now all are of one version
    assert subscriber.take_outbox() == data
    assert (hub.counters.received, hub.counters.packets_sent - sent) == (24, 8)
    assert hub.replay is not None
    kept = [bytes(each.packet.payload) for each in hub.replay.missed("#", {})[0]]
    assert kept == [b"%c" % letter for letter in b"abcdefgh"] * 3


@pytest.mark.long
def test_it_is_known_which_readers_a_batch_filled_up():
    hub = new_hub()
    slow = Client(hub, "slow")
    slow.subscribe("a")
    publisher = Client(hub, "publisher")
    publisher.connection.receive(rows(200, b"x" * 1000), 1.0)
    assert not publisher.connection.flow.filled
    for _ in range(2):  # now its outbox is full, and then it has to wait
        publisher.connection.receive(rows(200, b"x" * 1000), 1.0)
        assert list(publisher.connection.flow.filled) == [hub.sessions["slow"]]
    other = Client(hub, "other")
    other.connection.receive(rows(200, b"x" * 1000).replace(b"\x00\x01a", b"\x00\x01b"), 1.0)
    assert not other.connection.flow.filled
    assert hub.outboxes.backpressure._slow == {hub.sessions["slow"]}
    for _ in range(100):
        publisher.connection.receive(rows(200, b"x" * 1000), 1.0)
        publisher.connection.drained(1.0)  # its next turn
    assert hub.counters.lost
    assert hub.sessions["slow"].is_given_up
    slow.connection.lost(2.0)
    assert not hub.outboxes.backpressure._slow  # nobody is remembered who has gone


def test_packets_in_a_row_are_one_batch_whatever_their_lengths():
    wire = Codec()
    wire.feed(mqtt5.ConnectPacket("c", clean_start=True).write())
    wire.bundles = True
    first, *others = wire.feed(
        rows(300) + rows(300, b"y" * 200) + mqtt5.PingReqPacket().write() + rows(5)[:-1]
    )
    assert isinstance(first, mqtt5.PublishPacket)  # the first is looked at; the others are like it
    batch, ping, last = others
    assert isinstance(batch, PacketBatch)
    assert isinstance(last, PacketBatch)
    assert (len(batch), batch.topic, len(last)) == (599, "a", 4)
    assert isinstance(ping, mqtt5.PingReqPacket)
    assert [bytes(each.payload) for each in batch.packets(0, 3)] == [b"x1", b"x2", b"x3"]
    assert batch.piece(0, 599) == (rows(300) + rows(300, b"y" * 200))[len(first.write()) :]


def test_who_cannot_take_more_gets_the_rest_in_turn():
    hub = new_hub()
    slow, quick = Client(hub, "slow"), Client(hub, "quick")
    for client in (slow, quick):
        client.subscribe("a")
    publisher = Client(hub, "publisher")
    data = rows(100, b"x" * 1000)
    for _ in range(10):  # a megabyte, while both are served after each piece
        publisher.connection.receive(data, 1.0)
        quick.read()
        quick.connection.drained(1.0)
    assert slow.connection.flow.blocked is True
    seen: list[Any] = []
    for _ in range(100):
        seen += slow.read()
        slow.connection.drained(1.0)
    seen += slow.read()
    numbers = [int(bytes(each.payload)[1000:]) for each in seen]
    assert numbers == list(range(100)) * 10


@pytest.mark.parametrize("topic", ["$SYS/x", "deep" + "/x" * 300])
def test_what_may_not_be_published_is_refused_one_by_one(topic):
    hub = new_hub()
    publisher = Client(hub, "publisher")
    publisher.connection.receive(rows(10, topic=topic), 1.0)
    assert hub.counters.received == 0
    assert sum(hub.counters.lost.values()) == 10


def test_a_pace_counts_every_packet_of_a_batch():
    hub = new_hub(publications_per_s_max=10.0)
    publisher = Client(hub, "publisher")
    publisher.connection.receive(rows(100), 1.0)
    assert publisher.connection.flow.pause_s > 5.0
