"""Does a network of real brokers keep its promises to durable sessions, whichever of them is killed?"""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from betimes.model.topology import Link
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports

WITHIN_S = 60.0
LINKS = (Link(source="a", target="b", s_per_kb_mean=0.001), Link(source="b", target="c", s_per_kb_mean=0.001))


def connected(port: int, name: str, *, expiry_s: int = 0) -> paho.Client:
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=paho.MQTTv5)
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = expiry_s
    end_s = time.monotonic() + WITHIN_S
    while True:
        try:
            client.connect("127.0.0.1", port, clean_start=False, properties=properties)
        except OSError:
            assert time.monotonic() < end_s
            time.sleep(0.2)
        else:
            return client


class Publishing:
    """A publisher that numbers what it says, and knows what was acknowledged; it comes back when cut off."""

    def __init__(self, port: int, qos: int) -> None:
        self.acknowledged: set[int] = set()
        self.stopping = threading.Event()
        self._qos = qos
        self._number_of: dict[int, int] = {}
        self._client = connected(port, f"publisher-{qos}", expiry_s=1000)
        self._client.on_publish = self._published
        self._client.reconnect_delay_set(1, 1)
        self._client.loop_start()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join()
        end_s = time.monotonic() + WITHIN_S
        while self._number_of and time.monotonic() < end_s:
            time.sleep(0.05)
        self._client.disconnect()
        self._client.loop_stop()

    def _run(self) -> None:
        for number in range(100_000):
            if self.stopping.wait(0.005):
                return
            while len(self._number_of) > 50 and not self.stopping.wait(0.01):
                pass  # it was cut off, and what it says meanwhile would only pile up
            sent = self._client.publish(f"news/{self._qos}", str(number).ljust(200), qos=self._qos)
            self._number_of[sent.mid] = number

    def _published(self, _client, _data, packet_id, reason, _properties) -> None:
        while packet_id not in self._number_of:
            time.sleep(0.001)
        number = self._number_of.pop(packet_id)
        if not reason.is_failure:
            self.acknowledged.add(number)


class Subscribing:
    """A durable subscriber that keeps all it gets, by topic."""

    def __init__(self, port: int) -> None:
        self.got: dict[str, list[int]] = {"news/1": [], "news/2": []}
        self.is_known = threading.Event()  # at the broker where publishers are
        self._client = connected(port, "subscriber", expiry_s=1000)
        self._client.on_message = self._take
        self._client.subscribe("news/#", qos=2)
        self._client.reconnect_delay_set(1, 1)
        self._client.loop_start()

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def wait_until_known(self, port: int) -> None:
        """Wait until what is published at another broker comes here."""
        probing = connected(port, "probe")
        probing.loop_start()
        end_s = time.monotonic() + WITHIN_S
        while not self.is_known.wait(0.1):
            assert time.monotonic() < end_s
            probing.publish("news/probe")
        probing.disconnect()
        probing.loop_stop()

    def _take(self, _client, _data, message) -> None:
        if message.topic == "news/probe":
            self.is_known.set()
            return
        self.got[message.topic].append(int(message.payload))


@pytest.mark.live
def test_a_chain_of_three_under_load_loses_nothing_that_was_acknowledged(tmp_path):
    chance = random.Random(7)
    ports = dict(zip("abc", free_ports(3), strict=True))
    plan = FleetPlan(ports=ports, links=LINKS, settings={"anonymous": True}, stores=tmp_path)
    with Fleet(plan) as fleet:
        subscribing = Subscribing(ports["c"])
        subscribing.wait_until_known(ports["a"])
        publishing = [Publishing(ports["a"], qos) for qos in (1, 2)]
        for name in ("b", "c", "b", "a"):
            time.sleep(chance.uniform(0.5, 1.0))
            os.kill(fleet.process_id(name), signal.SIGKILL)
            while not fleet.tend():
                time.sleep(0.02)
            time.sleep(chance.uniform(1.0, 2.0))
        for each in publishing:
            each.stop()
        wanted = {f"news/{qos}": each.acknowledged for qos, each in zip((1, 2), publishing, strict=True)}
        end_s = time.monotonic() + WITHIN_S
        while time.monotonic() < end_s and any(
            not wanted[topic] <= set(got) for topic, got in subscribing.got.items()
        ):
            time.sleep(0.1)
        subscribing.stop()
    for topic, got in subscribing.got.items():
        assert len(wanted[topic]) > 50
        assert sorted(wanted[topic] - set(got)) == []
    assert len(subscribing.got["news/2"]) == len(set(subscribing.got["news/2"]))
