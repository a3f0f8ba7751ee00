"""Do Mosquitto's command line clients work with the broker, in every version of MQTT?"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from tests.interop.brokers import HOST, WITHIN_S, Broker, running_broker

PUB, SUB = shutil.which("mosquitto_pub"), shutil.which("mosquitto_sub")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not (PUB and SUB), reason="mosquitto_pub and mosquitto_sub are not installed"),
]

BOTH = pytest.mark.parametrize("version", ["5", "311"])
EVERY = pytest.mark.parametrize("version", ["5", "311", "mqttv31"])


@pytest.fixture
def broker() -> Iterator[Broker]:
    with running_broker() as found:
        yield found


def command(program: str | None, broker: Broker, version: str, *arguments: str) -> list[str]:
    assert program is not None
    return [program, "-h", HOST, "-p", str(broker.port), "-V", version, *arguments]


def publish(broker: Broker, version: str, *arguments: str) -> None:
    done = subprocess.run(
        command(PUB, broker, version, *arguments),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@dataclass
class Listening:
    """A mosquitto_sub that runs beside the test."""

    process: subprocess.Popen[str]

    def lines(self) -> list[str]:
        """Return what it printed, once it has ended by itself."""
        out, err = self.process.communicate(timeout=WITHIN_S)
        assert (self.process.returncode, err) == (0, "")
        return out.splitlines()


@contextmanager
def subscribed(broker: Broker, version: str, count: int, *arguments: str) -> Iterator[Listening]:
    """Run a mosquitto_sub that ends after so many messages; go on when the broker knows what it wants.

    What is retained may be all that it waits for: then it has ended by then.
    """
    name = f"sub{len(broker.hub.sessions)}"
    asked = command(SUB, broker, version, "-i", name, "-C", str(count), *arguments)
    process = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: process.poll() is not None or has_grants(broker, name))
        yield Listening(process)
    finally:
        process.kill()
        process.communicate()


def has_grants(broker: Broker, name: str) -> bool:
    session = broker.hub.sessions.get(name)
    return session is not None and bool(session.subscriptions)


def until(condition) -> None:
    end_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(0.01)


@pytest.mark.mqtt311("MQTT-7.0.0-2")
@EVERY
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_every_quality_arrives_in_order(broker, version, qos):
    with subscribed(broker, version, 3, "-t", "a/+", "-q", qos, "-F", "%t %q %p") as sub:
        for number in range(3):
            publish(broker, version, "-t", "a/b", "-q", qos, "-m", str(number))
        assert sub.lines() == [f"a/b {qos} {number}" for number in range(3)]


def test_versions_understand_each_other(broker):
    with (
        subscribed(broker, "5", 1, "-t", "t", "-q", "2") as new,
        subscribed(broker, "311", 1, "-t", "t", "-q", "2") as old,
    ):
        publish(broker, "311", "-t", "t", "-q", "2", "-m", "hello")
        assert new.lines() == old.lines() == ["hello"]


def test_user_properties_are_the_filter_and_the_bound(broker):
    asked = ["-D", "subscribe", "user-property", "filter", "speed > 50 AND kind = 'car'"]
    asked += ["-D", "subscribe", "user-property", "max-delay", "10m"]
    with subscribed(broker, "5", 2, "-t", "traffic/#", *asked, "-F", "%t %p %P") as sub:
        for speed, kind in (("61", "car"), ("49", "car"), ("80", "bus"), ("70", "car")):
            given = ["-D", "publish", "user-property", "speed", speed]
            given += ["-D", "publish", "user-property", "kind", kind]
            publish(broker, "5", "-t", "traffic/a1", "-m", speed, *given)
        first, second = sub.lines()
    assert first.startswith("traffic/a1 61 speed:61 kind:car $id:b1:1 $age:")
    assert second.startswith("traffic/a1 70 speed:70 kind:car $id:b1:4 $age:")


def test_what_is_older_than_the_bound_is_not_delivered(broker):
    publish(broker, "5", "-t", "old", "-r", "-m", "stale")
    time.sleep(0.2)
    publish(broker, "5", "-t", "fresh", "-r", "-m", "good")
    asked = ["-D", "subscribe", "user-property", "max-delay", "100ms"]
    with subscribed(broker, "5", 1, "-t", "old", "-t", "fresh", *asked) as sub:
        publish(broker, "5", "-t", "fresh", "-m", "good")  # where this machine took longer than that
        assert sub.lines() == ["good"]


@BOTH
def test_a_retained_message_greets_and_is_taken_back(broker, version):
    publish(broker, version, "-t", "state", "-r", "-q", "1", "-m", "last word")
    with subscribed(broker, version, 1, "-t", "state", "-F", "%r %p") as sub:
        assert sub.lines() == ["1 last word"]
    publish(broker, version, "-t", "state", "-r", "-q", "1", "-n")
    with subscribed(broker, version, 1, "-t", "state", "-F", "%r %p") as sub:
        publish(broker, version, "-t", "state", "-m", "fresh")
        assert sub.lines() == ["0 fresh"]


@BOTH
def test_a_will_is_sent_for_who_is_killed(broker, version):
    will = ["--will-topic", "gone", "--will-payload", "lost", "--will-qos", "1"]
    with (
        subscribed(broker, version, 1, "-t", "gone", "-q", "1") as watcher,
        subscribed(broker, version, 1, "-t", "nothing", *will) as mortal,
    ):
        mortal.process.kill()
        assert watcher.lines() == ["lost"]


@BOTH
def test_a_session_is_resumed_with_what_came_meanwhile(broker, version):
    keeps = ["-c", "-q", "1", "-t", "t"] + (["-x", "1000"] if version == "5" else [])
    with subscribed(broker, version, 1, *keeps) as sub:
        publish(broker, version, "-t", "t", "-q", "1", "-m", "first")
        assert sub.lines() == ["first"]
    publish(broker, version, "-t", "t", "-q", "1", "-m", "meanwhile")
    done = subprocess.run(
        command(SUB, broker, version, "-i", "sub0", "-C", "1", *keeps),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("meanwhile\n", "")
