"""Is what is sent to a client written once, within what the client takes?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.talking import Client, new_connection, new_hub

from betimes.broker.delivery.flow import OUTBOX_BYTES_MAX
from betimes.broker.delivery.outbox import ALIASES_OUT_MAX
from betimes.mqtt.packet_batch import PacketBatch
from betimes.mqtt.reason_codes import DisconnectCode, Refusal


@pytest.mark.mqtt("MQTT-3.1.2-26", "MQTT-3.3.2-11", "MQTT-3.3.2-7")
def test_topics_are_abbreviated_for_a_client_that_takes_aliases_and_anew_on_each_connection():
    hub = new_hub()
    pub = Client(hub, "pub")
    for _ in range(2):
        sub = Client(hub, "sub", topic_alias_max=1)
        sub.subscribe("#")
        for topic in ("one", "one", "two", "one"):
            pub.publish(topic)
        seen = [(each.topic, each.topic_alias) for each in sub.read()]
        assert seen == [("one", 1), ("", 1), ("two", None), ("", 1)]


def test_only_so_many_topics_are_abbreviated():
    hub = new_hub()
    sub, pub = Client(hub, "sub", topic_alias_max=65_535), Client(hub, "pub")
    sub.subscribe("#")
    for number in range(ALIASES_OUT_MAX + 5):
        pub.publish(f"t{number}")
    assert sum(each.topic_alias is not None for each in sub.read()) == ALIASES_OUT_MAX


def test_an_alias_the_client_never_heard_of_is_not_used():
    hub = new_hub()
    sub, pub = Client(hub, "sub", topic_alias_max=5, max_packet_size=60), Client(hub, "pub")
    sub.subscribe("t")
    pub.publish("t", b"x" * 100)
    pub.publish("t", b"small")
    (got,) = sub.read()
    assert (got.topic, got.topic_alias) == ("t", 1)


def test_a_full_outbox_makes_publications_wait_until_it_is_written():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("t")
    for _ in range(10):
        pub.publish("t", b"x" * (OUTBOX_BYTES_MAX // 4))
    assert sub.connection.flow.blocked
    first = len(sub.read())
    assert first < 10
    sub.connection.drained(0.0)
    sub.connection.take_outbox()
    assert not hub.counters.lost


@pytest.mark.mqtt("MQTT-3.1.2-27")
def test_a_plain_publication_needs_another_way_where_topics_are_abbreviated():
    hub = new_hub()
    plain, short = Client(hub, "plain"), Client(hub, "short", topic_alias_max=1)
    for client in (plain, short):
        client.subscribe("t")
    Client(hub, "pub").publish("t")
    assert hub.counters.sent == 2
    assert (plain.read()[0].topic_alias, short.read()[0].topic_alias) == (None, 1)


def test_an_outbox_waits_to_be_written_until_it_is_taken_and_is_counted_then():
    hub = new_hub()
    connection = new_connection(hub)
    assert not hub.outboxes.waiting
    ping = mqtt5.PingRespPacket()
    assert connection.send(ping)
    assert connection.send(ping)
    assert hub.outboxes.waiting == {connection}
    assert hub.counters.packets_sent == 0
    assert connection.take_outbox() == ping.write() * 2
    assert connection.take_outbox() == b""
    assert (hub.counters.packets_sent, hub.counters.bytes_sent) == (2, 4)


def test_a_batch_is_as_many_packets_as_it_holds():
    hub = new_hub()
    client = Client(hub)
    before = hub.counters.packets_sent
    data = mqtt5.PublishPacket("t", b"x").write() * 3
    client.connection.send_batch(data, 3)
    assert client.connection.take_outbox() == data
    assert (hub.counters.sent, hub.counters.packets_sent - before) == (3, 3)


def test_a_batch_goes_as_it_came_only_to_who_takes_every_packet_of_it():
    hub = new_hub()
    packets = [mqtt5.PublishPacket("t", b"x" * size).write() for size in (10, 100)]
    batch = PacketBatch(b"".join(packets), 2)
    plain, small = Client(hub, "plain"), Client(hub, "small", max_packet_size=len(packets[1]) - 1)
    short = Client(hub, "short", topic_alias_max=1)
    assert plain.connection.takes_batch(batch)
    assert not small.connection.takes_batch(batch)
    assert not short.connection.takes_batch(batch)
    assert not plain.connection.takes_batch(PacketBatch(b"\x30\x04\x00\x01tx", 1, version=4))


def test_what_is_larger_than_the_client_takes_is_not_sent():
    client = Client(new_hub(), max_packet_size=30)
    assert not client.connection.send_bytes(b"x" * 31)
    assert client.connection.take_outbox() == b""


@pytest.mark.mqtt("MQTT-3.14.4-1")
def test_nothing_is_sent_behind_a_goodbye():
    client = Client(new_hub())
    client.connection.hang_up(Refusal(DisconnectCode.SERVER_BUSY.value, "in two\nlines"), 0.0)
    client.connection.send(mqtt5.PingRespPacket())
    (goodbye,) = client.read()
    assert (goodbye.reason_code, goodbye.reason_str) == (DisconnectCode.SERVER_BUSY, "in two lines")
    assert not client.hub.sessions
