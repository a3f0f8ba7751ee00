"""Does one look at a hub see what is there?"""

from __future__ import annotations

import mqtt5
from tests.broker.talking import Client, new_hub

from betimes.broker.observe.statistics import ObservedParts, gathered
from betimes.model.telemetry import Reason


def test_a_new_hub_has_nothing():
    found = gathered(ObservedParts(hub=new_hub()), 5.0)
    assert found.uptime_s == 5.0
    assert (found.connected, found.sessions, found.subscriptions, found.retained, found.queue_bytes) == (
        0,
    ) * 5
    assert set(found.lost) == set(Reason)
    assert sum(found.lost.values()) == 0


def test_everything_that_happens_is_seen():
    hub = new_hub()
    client, away = Client(hub, "c"), Client(hub, "away", session_expiry_interval=100)
    client.subscribe("a", "b/#")
    away.subscribe("a", qos=1)
    away.send(mqtt5.DisconnectPacket())
    client.publish("a", b"x", qos=1, retain=True)
    client.publish("$no", b"x")
    client.read()
    found = gathered(ObservedParts(hub=hub), 0.0)
    assert (found.connected, found.sessions) == (1, 2)
    assert (found.subscriptions, found.retained) == (3, 1)
    assert found.queue_bytes == hub.sessions["away"].queue_bytes > 0
    assert (found.counters.received, found.counters.sent) == (1, 1)
    assert (found.lost[Reason.REFUSED], sum(found.lost.values())) == (1, 1)


def test_packets_and_bytes_are_counted_both_ways():
    hub = new_hub()
    connect = mqtt5.ConnectPacket("c", clean_start=True).write()
    client = Client(hub, "c")
    found = gathered(ObservedParts(hub=hub), 0.0)
    assert (found.counters.packets_received, found.counters.bytes_received) == (1, len(connect))
    assert (found.counters.packets_sent, found.counters.bytes_sent) == (1, len(client.connack.write()))
    pings = mqtt5.PingReqPacket().write() * 3
    client.connection.receive(pings[:5], 0.0)
    client.connection.receive(pings[5:], 0.0)
    client.read()
    found = gathered(ObservedParts(hub=hub), 0.0)
    assert (found.counters.packets_received, found.counters.bytes_received) == (4, len(connect) + 6)
    assert found.counters.packets_sent == 4
    client.connection.receive(pings[:2] + b"\x00", 0.0)
    assert (
        gathered(ObservedParts(hub=hub), 0.0).counters.packets_received == 5
    )  # what came before a mistake counts
