"""Is a payload format indicator forwarded as the publisher stated it, also where it is 0 [MQTT-3.3.2-4]?"""

from __future__ import annotations

import mqtt5
import numpy as np
import pytest
from tests.broker.keeping import Shelf, kept_hub
from tests.broker.networks import Net
from tests.broker.replay.test_buffer import keeping_hub
from tests.broker.talking import Client, new_connection, new_hub

from betimes.model.buffer_settings import BufferSettings
from betimes.mqtt.mqtt311 import written_length
from betimes.mqtt.packet_scan import after_property

STATED = {"nothing": b"", "0": b"\x01\x00", "1": b"\x01\x01"}
EXPIRY = b"\x02\x00\x00\x01\x00"  # which has the bytes of an indicator of 0 in it
every_statement = pytest.mark.parametrize("stated", STATED.values(), ids=STATED.keys())


def publish(stated: bytes, *, qos: int = 0, retain: bool = False, before: bytes = b"") -> bytes:
    """Return a PUBLISH to t with these properties."""
    properties = before + stated
    packet_id = b"\x00\x07" if qos else b""
    body = b"\x00\x01t" + packet_id + bytes((len(properties),)) + properties + b"x"
    return bytes((0x30 | qos << 1 | retain,)) + written_length(len(body)) + body


def indicators(data: bytes) -> list[bytes]:
    """Return of each PUBLISH in the data its payload format indicator as it stands there."""
    found = []
    while data:
        packet, size = mqtt5.read(memoryview(data))
        if isinstance(packet, mqtt5.PublishPacket):
            body = (
                2 + 2 + len(packet.topic) + (2 if packet.qos.value else 0)
            )  # a remaining length of one byte
            at, end = body + 1, body + 1 + data[body]
            stated = b""
            while at < end:
                after = int(after_property(np.frombuffer(data, np.uint8), at))
                stated += data[at:after] if data[at] == 0x01 else b""
                at = after
            found.append(stated)
        data = data[size:]
    return found


def outbox(client: Client) -> list[bytes]:
    return indicators(client.connection.take_outbox())


def put(client: Client, data: bytes) -> None:
    client.connection.receive(data, client.now_s)
    client.read()


@pytest.mark.mqtt("MQTT-3.3.2-4")
@every_statement
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("aliases", [0, 5])
def test_a_subscriber_is_told_what_the_publisher_stated(stated, qos, aliases):
    hub = new_hub()
    sub = Client(hub, "sub", topic_alias_max=aliases)
    sub.subscribe("t", qos=qos)
    put(Client(hub, "pub"), publish(stated, qos=qos))
    assert outbox(sub) == [stated]


@every_statement
def test_other_properties_may_stand_before_it(stated):
    hub = new_hub()
    sub = Client(hub, "sub")
    sub.subscribe("t")
    put(Client(hub, "pub"), publish(stated, before=EXPIRY))
    assert outbox(sub) == [stated]


@pytest.mark.mqtt("MQTT-3.3.2-4")
@every_statement
def test_a_retained_message_keeps_it(stated):
    hub = new_hub()
    put(Client(hub, "pub"), publish(stated, retain=True))
    sub = Client(hub, "sub")
    sub.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t")]))
    assert outbox(sub) == [stated]


@pytest.mark.mqtt("MQTT-3.3.2-4")
@every_statement
def test_a_will_keeps_it(stated):
    hub = new_hub()
    sub, leaver = Client(hub, "sub"), new_connection(hub)
    sub.subscribe("t")
    will = bytes((len(stated),)) + stated + b"\x00\x01t\x00\x01x"
    body = b"\x00\x04MQTT\x05\x06\x00\x00\x00\x00\x01w" + will
    leaver.receive(b"\x10" + written_length(len(body)) + body, 0.0)
    leaver.lost(0.0)
    assert outbox(sub) == [stated]


@pytest.mark.mqtt("MQTT-3.3.2-4")
@every_statement
def test_a_store_keeps_it_for_a_client_that_is_away(stated):
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    sub = Client(hub, "sub", session_expiry_interval=1000)
    sub.subscribe("t", qos=1)
    sub.connection.lost(0.0)
    put(Client(hub, "pub"), publish(stated, qos=1))
    store.commit()
    hub, _ = kept_hub(shelf, now_s=1.0)
    back = new_connection(hub, now_s=1.0)
    back.receive(mqtt5.ConnectPacket("sub").write(), 1.0)
    assert indicators(back.take_outbox()) == [stated]


@every_statement
@pytest.mark.parametrize("qos", [0, 1])
def test_a_subscriber_that_resumes_is_told_it(stated, qos):
    hub = keeping_hub()
    anna = Client(hub, "anna")
    put(anna, publish(stated) + publish(b""))
    put(anna, publish(stated, qos=1))
    ben = Client(hub, "ben")
    pattern = mqtt5.TopicFilter("t", max_qos=mqtt5.QoS(qos))
    ben.send(mqtt5.SubscribePacket(1, [pattern], user_properties=[("resume-after", "b1:0")]))
    assert outbox(ben) == [stated, b"", stated]


@pytest.mark.mqtt("MQTT-3.3.2-4")
@every_statement
def test_it_crosses_a_link_and_is_kept_behind_it(stated):
    net = Net("a", "b", buffer=BufferSettings())
    net.join("a", "b")
    net.run(1.0)
    sub = net.client("b", "sub")
    sub.subscribe("t")
    net.run(1.0)
    put(net.client("a", "pub"), publish(stated))
    net.run(1.0)
    assert outbox(sub) == [stated]
