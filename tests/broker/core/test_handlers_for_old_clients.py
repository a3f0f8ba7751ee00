"""Does the broker keep those statements of MQTT 3.1.1 that version 5 does not have?"""

from __future__ import annotations

import pytest
from tests.broker.talking import Client, new_connection, new_hub
from tests.golden.packets import connect, disconnect, publish, pubrel, split, subscribe

from betimes.broker.core.connection import Connection
from betimes.broker.core.hub import Hub
from betimes.model.telemetry import Reason


def come(hub: Hub, client_id: str = "c", *, clean: bool = True) -> tuple[Connection, list[bytes]]:
    """Connect a client of 3.1.1, and return what it is told."""
    connection = new_connection(hub)
    connection.receive(connect(client_id, v3=True, clean=clean), 0.0)
    return connection, list(split(connection.take_outbox()))


def ask(connection: Connection, data: bytes) -> list[bytes]:
    connection.receive(data, 0.0)
    return list(split(connection.take_outbox()))


@pytest.mark.mqtt311("MQTT-3.2.2-2", "MQTT-3.1.2-4", "MQTT-3.1.2-5")
def test_a_session_that_is_kept_is_told_of_and_holds_what_came_meanwhile():
    hub = new_hub()
    first, _ = come(hub, clean=False)
    ask(first, subscribe(1, "t", qos=1, v3=True))
    ask(first, disconnect(v3=True))
    hub.tick(10.0**8)
    Client(hub, "pub").publish("t", qos=1)
    _, told = come(hub, clean=False)
    assert told == [b"\x20\x02\x01\x00", publish("t", qos=1, packet_id=1, v3=True)]


@pytest.mark.mqtt311("MQTT-3.1.2-6")
def test_a_clean_session_ends_with_its_connection():
    hub = new_hub()
    first, _ = come(hub)
    ask(first, subscribe(1, "t", qos=1, v3=True))
    first.lost(0.0)
    assert not hub.sessions
    _, told = come(hub, clean=False)
    assert told == [b"\x20\x02\x00\x00"]


@pytest.mark.mqtt311("MQTT-3.1.3-9")
def test_a_client_id_that_is_too_long_is_rejected_by_its_code():
    connection, told = come(new_hub(client_id_letters_max=5), "x" * 6)
    assert told == [b"\x20\x02\x00\x02"]
    assert connection.closing


@pytest.mark.mqtt311("MQTT-3.1.2-7", "MQTT-3.3.1-8", "MQTT-3.3.1-9")
def test_a_retained_message_outlives_its_publisher_and_is_marked_for_new_subscribers_only():
    hub = new_hub()
    publisher, _ = come(hub, "pub")
    there, _ = come(hub, "there")
    ask(there, subscribe(1, "t", v3=True))
    ask(publisher, publish("t", retain=True, v3=True))
    publisher.lost(0.0)
    assert list(split(there.take_outbox())) == [publish("t", v3=True)]
    late, _ = come(hub, "late")
    assert ask(late, subscribe(1, "t", v3=True)) == [
        b"\x90\x03\x00\x01\x00",
        publish("t", retain=True, v3=True),
    ]


@pytest.mark.mqtt311("MQTT-3.1.2-12")
def test_a_client_without_a_will_leaves_none():
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("#")
    connection, _ = come(hub)
    connection.lost(0.0)
    hub.tick(1000.0)
    assert watcher.got() == []


@pytest.mark.mqtt311("MQTT-4.8.0-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_cannot_be_kept_is_not_acknowledged(qos):
    hub = new_hub(retained_max=1)
    connection, _ = come(hub)
    ask(connection, publish("a", retain=True, v3=True))
    assert ask(connection, publish("b", qos=qos, packet_id=7, retain=True, v3=True)) == []
    assert connection.closing
    assert hub.counters.lost == {Reason.QUEUE_FULL: 1}


@pytest.mark.mqtt311("MQTT-3.3.5-2")
@pytest.mark.parametrize(("qos", "answers"), [(1, [b"\x40\x02\x00\x07"]), (2, [b"\x50\x02\x00\x07"])])
def test_a_message_that_may_not_be_published_is_acknowledged_and_goes_nowhere(qos, answers):
    hub = new_hub()
    watcher = Client(hub, "watcher")
    watcher.subscribe("$SYS/#")
    connection, _ = come(hub)
    assert ask(connection, publish("$SYS/x", qos=qos, packet_id=7, v3=True)) == answers
    assert ask(connection, pubrel(7)) == [b"\x70\x02\x00\x07"]
    assert watcher.got() == []
