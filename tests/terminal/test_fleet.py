"""Does a whole network of brokers start, heal and stop?"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import tomllib

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from betimes.language.files.server_file import read_server_file
from betimes.model.errors import BetimesError
from betimes.model.topology import Link
from betimes.terminal.fleet import BROKERS_MAX, FREE_PORTS, HOST, Fleet, FleetPlan, broker_files, free_ports

WITHIN_S = 30.0
LINKS = (
    Link(source="a", target="b", s_per_kb_mean=0.02),
    Link(source="b", target="c", s_per_kb_mean=0.05),
    Link(source="c", target="b", s_per_kb_mean=0.10),
)


def test_each_broker_gets_a_file_that_it_can_read():
    plan = FleetPlan(ports={"a": 1001, "b": 1002, "c": 1003}, links=LINKS, settings={"anonymous": True})
    files = {
        name: read_server_file(text, name)
        for name, text in broker_files(plan, "a secret of this test").items()
    }
    terms = {
        (name, link.to): (link.host, link.port if link.host else None, round(link.rate_kb_per_s or 0.0, 3))
        for name, settings in files.items()
        if settings.network is not None
        for link in settings.network.links
    }
    assert terms == {
        ("a", "b"): ("127.0.0.1", 1002, 50.0),
        ("b", "a"): (None, None, 50.0),
        ("b", "c"): ("127.0.0.1", 1003, 20.0),
        ("c", "b"): (None, None, 10.0),
    }
    assert all(settings.anonymous for settings in files.values())


def test_a_setting_of_one_broker_wins_over_that_of_all():
    plan = FleetPlan(
        ports={"a": 1001, "b": 1002},
        links=(),
        settings={"anonymous": True, "sys_every": "1s"},
        own_settings={"b": {"metrics_port": 1003, "sys_every": "5s"}},
    )
    files = {
        name: read_server_file(text, name)
        for name, text in broker_files(plan, "a secret of this test").items()
    }
    assert (files["a"].metrics_port, files["a"].sys_every_s) == (None, 1.0)
    assert (files["b"].metrics_port, files["b"].sys_every_s) == (1003, 5.0)


def test_odd_names_stay_inside_their_quotes():
    names = {'say "hi"': 1001, "back\\slash": 1002}
    plan = FleetPlan(ports=names, links=())
    texts = broker_files(plan, "a secret of this test")
    assert [tomllib.loads(text)["name"] for text in texts.values()] == list(names)


def test_too_many_brokers_are_refused():
    with pytest.raises(BetimesError, match="too many"):
        Fleet(FleetPlan(ports={str(number): number for number in range(BROKERS_MAX + 1)}, links=()))


def test_free_ports_are_not_those_that_systems_give_to_who_dials_out():
    first = free_ports(40)
    assert len(set(first)) == 40
    assert set(first) <= set(FREE_PORTS)
    with socket.create_server((HOST, first[0])):
        assert first[0] not in free_ports(len(FREE_PORTS) // 100)


@pytest.mark.long
def test_more_ports_than_are_free_are_an_error():
    with pytest.raises(BetimesError, match="ports of 22000 to 31999 are free"):
        free_ports(len(FREE_PORTS) + 1)


@pytest.mark.long
def test_a_broker_that_cannot_start_is_told_of():
    port = free_ports(1)[0]
    plan = FleetPlan(ports={"a": port}, links=(), settings={"colour": "red"})
    with pytest.raises(BetimesError, match="a: the broker did not start"), Fleet(plan):
        pass


class Listening:
    """A subscriber that keeps what it hears, and comes back by itself."""

    def __init__(self, port: int) -> None:
        self.heard: list[bytes] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = lambda client, *_: client.subscribe("news", qos=1)
        self._client.on_message = lambda _client, _data, message: self.heard.append(bytes(message.payload))
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def publish_until_heard(port: int, payload: bytes, listening: Listening) -> None:
    """Publish again and again, on a connection of its own each time, until it arrives."""
    end_s = time.monotonic() + WITHIN_S
    while payload not in listening.heard:
        assert time.monotonic() < end_s, f"{payload!r} never arrived"
        client = paho.Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", port)
        client.loop_start()
        client.publish("news", payload, qos=1).wait_for_publish(5.0)
        time.sleep(0.2)
        client.disconnect()
        client.loop_stop()


@pytest.mark.live
def test_messages_cross_the_network_and_a_killed_broker_comes_back():
    plan = FleetPlan(
        ports=dict(zip("abc", free_ports(3), strict=True)), links=LINKS, settings={"anonymous": True}
    )
    with Fleet(plan) as fleet:
        listening = Listening(plan.ports["c"])
        try:
            publish_until_heard(plan.ports["a"], b"before", listening)
            os.kill(fleet.process_id("b"), signal.SIGKILL)
            said: list[str] = []
            end_s = time.monotonic() + WITHIN_S
            while not said and time.monotonic() < end_s:
                said = fleet.tend()
                time.sleep(0.05)
            assert "b ended with code -9 and was restarted" in said
            publish_until_heard(plan.ports["a"], b"after", listening)
        finally:
            listening.stop()
        processes = [fleet.process_id(name) for name in plan.ports]
    for process in processes:
        assert subprocess.run(["kill", "-0", str(process)], capture_output=True, check=False).returncode


def test_every_broker_keeps_what_the_plan_says():
    plan = FleetPlan(ports={"a": 1, "b": 2}, links=(), fetch=("t/#",))
    for text in broker_files(plan, "a secret of this test").values():
        buffer = read_server_file(text, "file").buffer
        assert buffer is not None
        assert buffer.fetch == ("t/#",)
