"""Is anything lost that a real broker acknowledged before it was killed, or does it come twice?"""

from __future__ import annotations

import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import mqtt5
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.broker.listening import WITHIN_S

KILLS = 3
WINDOW = 60  # messages that wait for their acknowledgement
COMMAND = [sys.executable, "-c", "from betimes.cli.main import main; main()", "broker", "--anonymous"]


class Killable:
    """A broker in a process of its own, with one file and, after the first start, one port."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self, *, file_bytes_max: int | None = None) -> None:
        command = [*COMMAND, "--port", str(self.port), "--store", self.path]
        if file_bytes_max is not None:  # no file may grow beyond it, as if the disk were full
            command = ["sh", "-c", f'ulimit -f {file_bytes_max // 512}; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r":(\d+)\n", line)
        assert found, line or self.process.communicate()[1]
        self.port = int(found.group(1))

    def end(self, number: signal.Signals = signal.SIGKILL) -> tuple[int, str]:
        """Send it a signal; return what it ended with, and what it said."""
        assert self.process is not None
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=WITHIN_S)
        return self.process.returncode, said


@pytest.fixture
def broker(tmp_path):
    made = Killable(str(tmp_path / "betimes.db"))
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.communicate()


class Patient(paho.Client):
    """Comes back when the broker is there: after a vain attempt Paho sends again what was received."""

    def reconnect(self) -> Any:
        """Fail before anything is forgotten, or connect."""
        socket.create_connection((self.host, self.port), timeout=WITHIN_S).close()
        return super().reconnect()


def client(name: str, port: int) -> paho.Client:
    """Return a client whose session survives, and which comes back by itself."""
    made = Patient(CallbackAPIVersion.VERSION2, client_id=name, protocol=paho.MQTTv5)
    made.reconnect_delay_set(1, 1)
    made.max_inflight_messages_set(WINDOW)
    lasting = Properties(PacketTypes.CONNECT)
    lasting.SessionExpiryInterval = 3600
    made.connect("127.0.0.1", port, clean_start=False, properties=lasting)
    return made


class Publisher:
    """Publishes with QoS 1 and 2 by turns, without end, and notes what was acknowledged."""

    def __init__(self, port: int) -> None:
        self.sent = 0
        self.acknowledged: set[int] = set()
        self._number: dict[int, int] = {}  # by message id
        self._client = client("pub", port)
        self._client.on_publish = self._on_publish
        self._client.loop_start()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Publish no more, and wait until all is acknowledged."""
        self._ending.set()
        self._thread.join(WITHIN_S)
        wait(lambda: len(self.acknowledged) == self.sent)
        self._client.loop_stop()

    def _publish(self) -> None:
        while not self._ending.is_set():
            if self.sent - len(self.acknowledged) >= WINDOW:
                time.sleep(0.001)
                continue
            self.sent += 1
            info = self._client.publish(f"load/{self.sent % 2}", str(self.sent), qos=1 + self.sent % 2)
            self._number[info.mid] = self.sent

    def _on_publish(self, _client: Any, _data: Any, mid: int, *_: Any) -> None:
        wait(lambda: mid in self._number)
        self.acknowledged.add(self._number.pop(mid))


class Subscriber:
    """Counts what comes, by number."""

    def __init__(self, name: str, port: int) -> None:
        self.got: Counter[int] = Counter()
        self.client = client(name, port)
        self.client.on_message = lambda _client, _data, message: self.got.update([int(message.payload)])
        subscribed = threading.Event()
        self.client.on_subscribe = lambda *_: subscribed.set()
        self.client.loop_start()
        wait(self.client.is_connected)
        self.client.subscribe("load/#", qos=2)
        assert subscribed.wait(WITHIN_S)


def wait(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.005)


@pytest.mark.live
def test_what_was_acknowledged_survives_being_killed_again_and_again(broker):
    chance = random.Random(5)
    broker.start()
    sleeper = Subscriber("sleeper", broker.port)
    sleeper.client.disconnect()
    sleeper.client.loop_stop()
    subscriber, publisher = Subscriber("sub", broker.port), Publisher(broker.port)
    for _ in range(KILLS):
        before = len(publisher.acknowledged)
        wait(lambda before=before: len(publisher.acknowledged) > before)  # type: ignore[misc]
        time.sleep(chance.uniform(0.0, 0.5))
        broker.end()
        broker.start()
    publisher.stop()
    sleeper.client.reconnect()
    sleeper.client.loop_start()
    for each in (subscriber, sleeper):
        wait(lambda got=each.got: len(got) == publisher.sent)  # type: ignore[misc]
        each.client.loop_stop()
        twice = [number for number, count in each.got.items() if count > 1 and number % 2]
        assert not twice, "of quality 2"
    assert publisher.sent > 100 * KILLS


@pytest.mark.live
def test_a_broker_that_can_write_no_more_acknowledges_no_more_and_ends(broker):
    broker.start(file_bytes_max=2_000_000)
    with Bare("sub", broker.port) as sub:
        sub.ask(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t", max_qos=mqtt5.QoS(1))]))
    acknowledged = []
    with Bare("pub", broker.port) as pub:
        for number in range(1000):
            payload = b"%d " % number + b"x" * 10_000
            answer = pub.ask(mqtt5.PublishPacket("t", payload, qos=mqtt5.QoS(1), packet_id=1))
            if answer is None:
                break
            acknowledged.append(payload)
    assert broker.process.wait(WITHIN_S) == 2
    _, said = broker.process.communicate()
    assert "betimes.db: cannot be written any more" in said
    assert "Traceback" not in said
    assert 10 < len(acknowledged) < 1000
    broker.start()
    with Bare("sub", broker.port) as sub:
        got = []
        for _ in acknowledged:
            packet = sub.read()
            got.append(packet.payload)
            sub.socket.sendall(mqtt5.PubAckPacket(packet.packet_id).write())
    assert got == acknowledged


@pytest.mark.live
def test_a_file_is_one_broker_s_and_a_good_end_keeps_everything(broker, tmp_path):
    broker.start()
    with Bare("sub", broker.port) as sub:
        sub.ask(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t", max_qos=mqtt5.QoS(1))]))
    second = subprocess.run(
        [*COMMAND, "--port", "0", "--store", broker.path],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert (second.returncode, second.stdout) == (2, "")
    assert "another broker has this file open" in second.stderr
    assert broker.end(signal.SIGTERM) == (0, "")
    assert [each.name for each in tmp_path.iterdir()] == ["betimes.db"]
    broker.start()
    with Bare("sub", broker.port) as sub:
        assert sub.connack.session_present


class Bare:
    """A client with a session that survives, on a bare socket."""

    def __init__(self, name: str, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S)
        self._rest = b""
        connect = mqtt5.ConnectPacket(name, clean_start=False, session_expiry_interval=3600)
        self.connack = self.ask(connect)

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, packet: mqtt5.Packet) -> Any:
        try:
            self.socket.sendall(packet.write())
            return self.read()
        except ConnectionError:
            return None

    def read(self) -> Any:
        """Return the next packet, None at the end."""
        while True:
            try:
                packet, size = mqtt5.read(memoryview(self._rest))
            except IndexError:
                more = self.socket.recv(65_536)
                if not more:
                    return None
                self._rest += more
            else:
                self._rest = self._rest[size:]
                return packet
