"""Does a session follow its client between real brokers, under load and whoever is killed?"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Coroutine
from itertools import combinations
from pathlib import Path
from typing import Any

import mqtt5
import pytest
from tests.broker.listening import Caller, run

from betimes.model.topology import Link
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

pytestmark = pytest.mark.live

LIVES = 12
MESSAGES = 1_000


def plan(*names: str, stores: Path | None = None) -> FleetPlan:
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    links = tuple(Link(source=one, target=other, s_per_kb_mean=0.0) for one, other in combinations(names, 2))
    settings = {"anonymous": True, "buffer.keep": False}
    return FleetPlan(ports=ports, links=links, settings=settings, stores=stores)


_open: list[Caller] = []


def run_and_close(test: Coroutine[Any, Any, None]) -> None:
    """Run a test, and leave no connection open whatever becomes of it."""

    async def closing() -> None:
        try:
            await test
        finally:
            while _open:
                _open.pop().writer.transport.abort()
            await asyncio.sleep(0.01)

    run(closing())


async def call(port: int, client_id: str, **connect: Any) -> tuple[Caller, Any]:
    """Connect, and return what is answered."""
    reader, writer = await asyncio.open_connection(HOST, port)
    caller = Caller(reader, writer)
    _open.append(caller)
    connect = {"clean_start": False, "session_expiry_interval": 3600, "keep_alive": 0, **connect}
    return caller, await caller.ask(mqtt5.ConnectPacket(client_id, **connect))


class Roamer:
    """A client that remembers which ids it has received, as MQTT asks of it, and goes without a word."""

    def __init__(self, ports: list[int], chance: random.Random) -> None:
        self._ports, self._chance = ports, chance
        self._known: set[int] = set()
        self.once: Counter[int] = Counter()  # what came with QoS 2
        self.repeatedly: set[int] = set()  # what came with QoS 1
        self.presents: list[bool] = []

    async def live(self, lives: int) -> None:
        """Come and go so many times, then stay."""
        for life in range(lives + 1):
            caller, connack = await call(self._chance.choice(self._ports), "roamer")
            self.presents.append(connack.session_present)
            if not connack.session_present:
                filters = [
                    mqtt5.TopicFilter("once", max_qos=mqtt5.QoS.EXACTLY_ONCE),
                    mqtt5.TopicFilter("repeatedly", max_qos=mqtt5.QoS.AT_LEAST_ONCE),
                ]
                caller.write(mqtt5.SubscribePacket(1, filters))
            stay_s = 1000.0 if life == lives else self._chance.random() * 0.4
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(stay_s):
                    await self._read(caller)
            caller.writer.transport.abort()
            await asyncio.sleep(self._chance.choice((0.0, 0.05, 0.2)))

    async def _read(self, caller: Caller) -> None:
        while (packet := await caller.read()) is not None:
            if isinstance(packet, mqtt5.PubRelPacket):
                self._known.discard(packet.packet_id)
                caller.write(mqtt5.PubCompPacket(packet.packet_id))
            elif isinstance(packet, mqtt5.PublishPacket):
                assert packet.packet_id is not None
                if packet.qos == mqtt5.QoS.AT_LEAST_ONCE:
                    self.repeatedly.add(int(packet.payload))
                    caller.write(mqtt5.PubAckPacket(packet.packet_id))
                    continue
                if packet.packet_id not in self._known:
                    self._known.add(packet.packet_id)
                    self.once[int(packet.payload)] += 1
                caller.write(mqtt5.PubRecPacket(packet.packet_id))


async def publish(port: int, number: int, step: int, count: int) -> None:
    """Publish numbers, at a pace that many lives fit into, each acknowledged before the next."""
    caller, _ = await call(port, f"publisher-{port}", clean_start=True, session_expiry_interval=0)
    for each in range(number, count, step):
        packet_id = each % 60_000 + 1
        payload = str(each).encode()
        once = mqtt5.PublishPacket("once", payload, qos=mqtt5.QoS.EXACTLY_ONCE, packet_id=packet_id)
        assert isinstance(await caller.ask(once), mqtt5.PubRecPacket)
        assert isinstance(await caller.ask(mqtt5.PubRelPacket(packet_id)), mqtt5.PubCompPacket)
        again = mqtt5.PublishPacket("repeatedly", payload, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=packet_id)
        assert isinstance(await caller.ask(again), mqtt5.PubAckPacket)
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_a_client_that_roams_under_load_loses_nothing_and_gets_nothing_of_qos_2_twice(names, tmp_path):
    async def test(ports: list[int]) -> None:
        await asyncio.sleep(1.0)  # the brokers link
        roamer = Roamer(ports, random.Random(len(names)))
        living = asyncio.create_task(roamer.live(LIVES))
        await asyncio.sleep(1.0)  # its subscriptions are known everywhere
        await asyncio.gather(
            *(publish(port, number, len(ports), MESSAGES) for number, port in enumerate(ports))
        )
        end_s = time.monotonic() + 20.0
        while len(roamer.once) < MESSAGES or len(roamer.repeatedly) < MESSAGES:
            await asyncio.sleep(0.1)
            assert not living.done()
            assert time.monotonic() < end_s, (len(roamer.once), len(roamer.repeatedly), roamer.presents)
        await asyncio.sleep(0.5)
        living.cancel()
        assert (set(roamer.once.values()), len(roamer.once)) == ({1}, MESSAGES)
        assert roamer.presents[0] is False
        assert all(roamer.presents[1:])
        assert len(roamer.presents) > LIVES // 2  # it moved in the middle of it

    network = plan(*names, stores=tmp_path)
    with Fleet(network):
        run_and_close(test(list(network.ports.values())))


def test_a_holder_that_is_stopped_or_killed_is_waited_for():
    async def test(fleet: Fleet, ports: dict[str, int]) -> None:
        await asyncio.sleep(1.0)
        caller, _ = await call(ports["a"], "ben")
        caller.writer.transport.abort()
        caller, connack = await call(ports["b"], "ben")
        assert connack.session_present
        caller.writer.transport.abort()
        await asyncio.sleep(0.5)
        os.kill(fleet.process_id("b"), signal.SIGSTOP)  # it has the session, and says nothing
        asking = asyncio.create_task(call(ports["a"], "ben"))
        await asyncio.sleep(3.0)
        assert not asking.done()
        os.kill(fleet.process_id("b"), signal.SIGCONT)
        caller, connack = await asking
        assert connack.session_present
        os.kill(fleet.process_id("b"), signal.SIGKILL)
        _, connack = await call(ports["a"], "eve")
        assert connack.reason_code == mqtt5.ConnAckReasonCode.SERVER_UNAVAILABLE

    network = plan("a", "b")
    with Fleet(network) as fleet:
        run_and_close(test(fleet, dict(network.ports)))


def test_a_session_that_moved_survives_a_kill_of_the_broker_that_has_it(tmp_path):
    async def test(fleet: Fleet, ports: dict[str, int]) -> None:
        await asyncio.sleep(1.0)
        ben, _ = await call(ports["a"], "ben")
        asked = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t", max_qos=mqtt5.QoS.AT_LEAST_ONCE)])
        await ben.ask(asked)
        ben.writer.transport.abort()
        anna, _ = await call(ports["a"], "anna", clean_start=True)
        packet = mqtt5.PublishPacket("t", b"hello", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1)
        await anna.ask(packet)
        ben, connack = await call(ports["b"], "ben", receive_max=1)
        assert connack.session_present
        assert (await ben.read()).payload == b"hello"
        os.kill(fleet.process_id("b"), signal.SIGKILL)
        while not fleet.tend():
            await asyncio.sleep(0.05)
        while True:
            with contextlib.suppress(OSError):
                ben, connack = await call(ports["b"], "ben")
                break
            await asyncio.sleep(0.1)
        assert connack.session_present
        again = await ben.read()
        assert (again.payload, again.duplicate) == (b"hello", True)

    network = plan("a", "b", stores=tmp_path)
    with Fleet(network) as fleet:
        run_and_close(test(fleet, dict(network.ports)))
