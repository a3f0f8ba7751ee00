"""Is all that waits for clients bounded together, and every publication counted once?"""

from __future__ import annotations

import mqtt5
from tests.broker.talking import Client, new_hub

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.memory_account import unbounded
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.queue_room import QueueRoom
from betimes.model.telemetry import Reason
from betimes.mqtt.packets import OVERHEAD_BYTES


def delivery(payload: bytes = b"x") -> Delivery:
    return Delivery(Publication(mqtt5.PublishPacket("t", payload), "t", born_s=0.0), qos=1)


def away(hub: Hub, count: int, **asked: str) -> None:
    """Let so many clients subscribe to everything and go away for long."""
    for number in range(count):
        client = Client(hub, f"away{number}", session_expiry_interval=1000)
        client.subscribe("#", qos=1, properties=asked)
        client.connection.lost(0.0)


def test_a_publication_counts_once_and_each_delivery_a_little():
    room, one, memory = QueueRoom(10_000), delivery(b"x" * 1000), unbounded()
    others = [Delivery(one.publication, qos=1) for _ in range(3)]
    for each in (one, *others):
        room.add(each, memory)
    assert room.taken_bytes == one.size_bytes + 3 * OVERHEAD_BYTES
    for each in (*others, one):
        room.remove(each, memory)
    assert room.taken_bytes == memory.taken_bytes == 0


def test_many_sessions_wait_for_no_more_than_the_bound_together():
    hub = new_hub(queues_bytes_max=200_000)
    away(hub, 50)
    publisher = Client(hub, "publisher")
    for _ in range(100):
        publisher.publish("t", b"x", qos=1)
    waiting = sum(len(session) for session in hub.sessions.values())
    assert hub._queue_room.taken_bytes <= 200_000
    assert 500 < waiting < 1000
    assert hub.counters.lost[Reason.QUEUE_FULL] == 50 * 100 - waiting


def test_what_is_sent_expires_or_ends_with_its_session_takes_no_room():
    hub = new_hub(queues_bytes_max=10**6)
    away(hub, 2)
    away(hub, 1, **{"max-delay": "5s"})
    publisher = Client(hub, "publisher")
    for _ in range(20):
        publisher.publish("t", b"x", qos=1)
    assert hub._queue_room.taken_bytes > 0
    back = Client(hub, "away0", session_expiry_interval=1000, clean_start=False)
    assert len(back.first) == 20
    back.connection.lost(0.0)
    hub.tick(2000.0)
    assert hub._queue_room.taken_bytes == 0
