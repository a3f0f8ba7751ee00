"""Does Eclipse Paho's Python client work with the broker, in both versions of MQTT?"""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions
from tests.interop.brokers import HOST, WITHIN_S, Broker, running_broker

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile

pytestmark = pytest.mark.live

BOTH = pytest.mark.parametrize("version", [MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311])
V5 = MQTTProtocolVersion.MQTTv5


def properties(kind: int, **values: Any) -> Properties:
    found = Properties(kind)
    for name, value in values.items():
        setattr(found, name, value)
    return found


class Client:
    """A paho client on its own thread, whose callbacks fill queues."""

    def __init__(
        self, client_id: str, version: MQTTProtocolVersion = V5, *, keeps: bool = False, **options: Any
    ) -> None:
        self._keeps = keeps
        self._version = version
        if version != V5:
            options["clean_session"] = not keeps
        self.paho = paho.Client(CallbackAPIVersion.VERSION2, client_id, protocol=version, **options)
        self.messages: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self._answers: queue.Queue[tuple[str, Any, Any]] = queue.Queue()
        self.session_present = False
        self.paho.on_message = lambda client, data, message: self.messages.put(message)
        self.paho.on_connect = lambda client, data, flags, code, given: self._answers.put(
            ("connect", flags, code)
        )
        self.paho.on_subscribe = lambda client, data, mid, codes, given: self._answers.put(
            ("sub", codes, given)
        )
        self.paho.on_publish = lambda client, data, mid, code, given: self._answers.put(("pub", code, given))

    def connect(self, broker: Broker, **options: Any) -> int:
        """Connect and return the reason code."""
        if self._version == V5:
            options["clean_start"] = not self._keeps
            if self._keeps:
                options["properties"] = properties(PacketTypes.CONNECT, SessionExpiryInterval=1000)
        self.paho.connect(HOST, broker.port, **options)
        self.paho.loop_start()
        flags, code = self.answer("connect")
        self.session_present = flags.session_present
        return int(code.value)

    def answer(self, kind: str) -> tuple[Any, Any]:
        while True:
            found, *answer = self._answers.get(timeout=WITHIN_S)
            if found == kind:
                return answer[0], answer[1]

    def subscribe(
        self, pattern: str, qos: int = 0, *, wish: dict[str, str] | None = None, **options: Any
    ) -> Any:
        """Subscribe and return the reason code, and the reason string if there is one."""
        if self._version == V5:
            asked = properties(PacketTypes.SUBSCRIBE, UserProperty=list((wish or {}).items()))
            self.paho.subscribe(pattern, options=SubscribeOptions(qos, **options), properties=asked)
        else:
            self.paho.subscribe(pattern, qos)
        codes, given = self.answer("sub")
        return codes[0].value, getattr(given, "ReasonString", None)

    def publish(
        self, topic: str, payload: bytes, qos: int = 0, *, retain: bool = False, **given: str
    ) -> None:
        asked = properties(PacketTypes.PUBLISH, UserProperty=list(given.items())) if given else None
        self.paho.publish(topic, payload, qos, retain, asked).wait_for_publish(WITHIN_S)

    def get(self) -> paho.MQTTMessage:
        return self.messages.get(timeout=WITHIN_S)

    def leave(self) -> None:
        self.paho.disconnect()
        self.paho.loop_stop()

    def vanish(self) -> None:
        """Be gone without a word."""
        self.paho.loop_stop()
        found: Any = self.paho.socket()
        if found is not None:
            found.shutdown(socket.SHUT_RDWR)
            found.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with running_broker() as found:
        yield found


@pytest.fixture
def connected(broker) -> Iterator[Callable[..., Client]]:
    with ExitStack() as leaving:

        def connect(client_id: str, version: MQTTProtocolVersion = V5, **options: Any) -> Client:
            client = Client(client_id, version, **options)
            assert client.connect(broker) == 0
            leaving.callback(client.leave)
            return client

        yield connect


@pytest.mark.mqtt311("MQTT-7.0.0-2")
@pytest.mark.mqtt("MQTT-4.2-1")
@BOTH
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_quality_works_both_ways(connected, version, qos):
    sub, pub = connected("sub", version), connected("pub", version)
    assert sub.subscribe("a/+", qos)[0] == qos
    for number in range(50):
        pub.publish("a/b", str(number).encode(), qos)
    got = [sub.get() for _ in range(50)]
    assert [each.payload for each in got] == [str(number).encode() for number in range(50)]
    assert {each.qos for each in got} == {qos}
    assert sub.messages.empty()


@BOTH
def test_versions_understand_each_other(connected, version):
    other = MQTTProtocolVersion.MQTTv311 if version == V5 else V5
    sub, pub = connected("sub", version), connected("pub", other)
    sub.subscribe("t", 2)
    pub.publish("t", b"hello", 2)
    assert sub.get().payload == b"hello"


@BOTH
def test_a_retained_message_greets_and_is_taken_back(connected, version):
    pub, early = connected("pub", version), connected("early", version)
    pub.publish("t", b"last word", 1, retain=True)
    early.subscribe("t")
    assert early.get().retain
    pub.publish("t", b"newer", 1, retain=True)
    assert not early.get().retain  # it was there when this came
    pub.publish("t", b"", 1, retain=True)
    assert early.get().payload == b""
    late = connected("late", version)
    late.subscribe("t")
    pub.publish("t", b"fresh", 1)
    assert late.get().payload == b"fresh"


@pytest.mark.mqtt311("MQTT-3.1.2-8")
@BOTH
def test_a_will_is_sent_for_who_vanishes(broker, connected, version):
    watcher = connected("watcher", version)
    watcher.subscribe("gone", 1)
    client = Client("c", version)
    client.paho.will_set("gone", b"lost", 1)
    client.connect(broker)
    client.vanish()
    assert watcher.get().payload == b"lost"


@pytest.mark.mqtt311("MQTT-3.2.2-2")
@BOTH
def test_a_session_is_resumed_with_what_came_meanwhile(broker, connected, version):
    sub = Client("sub", version, keeps=True)
    sub.connect(broker)
    assert not sub.session_present
    sub.subscribe("t", 1)
    sub.leave()
    connected("pub", version).publish("t", b"meanwhile", 1)
    again = Client("sub", version, keeps=True)
    again.connect(broker)
    assert again.session_present
    assert again.get().payload == b"meanwhile"
    again.leave()


def test_a_shared_subscription_divides_the_work(connected):
    members = [connected(f"m{number}") for number in range(2)]
    for member in members:
        assert member.subscribe("$share/g/jobs", 1)[0] == 1
    pub = connected("pub")
    for number in range(20):
        pub.publish("jobs", str(number).encode(), 1)
    got = [member.get().payload for _ in range(10) for member in members]
    assert sorted(got, key=int) == [str(number).encode() for number in range(20)]


def test_a_content_filter_lets_through_what_it_says(connected):
    sub, pub = connected("sub"), connected("pub")
    sub.subscribe("cars", 1, wish={"filter": "speed > 50 AND kind = 'car'", "max-delay": "10m", "price": "3"})
    for speed, kind in (("61", "car"), ("49", "car"), ("80", "bus"), ("70", "car")):
        pub.publish("cars", speed.encode(), 1, speed=speed, kind=kind)
    got = [sub.get() for _ in range(2)]
    assert [each.payload for each in got] == [b"61", b"70"]
    told = dict(got[0].properties.UserProperty)
    assert told["$id"] == "b1:1"
    assert int(told["$age"]) >= 0


def test_a_refused_filter_points_at_the_place_and_the_connection_stays_open(connected):
    client = connected("c")
    code, reason = client.subscribe("cars", wish={"filter": "speed >> 50"})
    assert code == 0x83
    assert "speed >^> 50" in reason
    assert client.subscribe("cars")[0] == 0
    client.publish("cars", b"still here")
    assert client.get().payload == b"still here"


def test_options_of_a_subscription_hold(connected):
    client, other = connected("c"), connected("other")
    client.subscribe("t", 1, noLocal=True, retainAsPublished=True)
    client.publish("t", b"mine", 1)
    other.publish("t", b"theirs", 1, retain=True)
    got = client.get()
    assert (got.payload, got.retain) == (b"theirs", True)


@BOTH
def test_a_wrong_password_is_refused(version):
    users = PasswordFile().with_user("ann", b"secret", Cost(ln=4))
    with running_broker(AccessControl(passwords=users)) as broker:
        for password, code in (("wrong", 0x86), ("secret", 0)):
            client = Client("c", version)
            client.paho.username_pw_set("ann", password)
            assert client.connect(broker) == code
            client.leave()


def test_a_slow_reader_does_not_stall_another(broker, connected):
    slow = Client("slow")  # its loop is stopped: it reads nothing
    slow.connect(broker)
    slow.subscribe("t")
    slow.paho.loop_stop()
    quick, pub = connected("quick"), connected("pub")
    quick.subscribe("t", 1)
    session = broker.hub.sessions["slow"]
    payload, number, until_s = b"x" * 100_000, 0, time.monotonic() + WITHIN_S
    while len(session) < 10 and time.monotonic() < until_s:
        pub.publish("t", payload + str(number).encode(), 1)
        assert quick.get().payload == payload + str(number).encode()
        number += 1
    assert len(session) >= 10
    slow.vanish()
