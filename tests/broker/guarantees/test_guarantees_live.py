"""Does a reserved subscriber of real brokers keep what it was promised, under load and whoever is killed?

a and f are joined by two ways of slow links. How fast anything is, nobody can promise on a busy machine: the
bound on latency has air, and what is not reserved misses it by far.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest
from tests.broker.listening import run, until

import betimes
from betimes.client.connection import Client, ClientSubscription
from betimes.client.errors import SubscriptionRefusedError
from betimes.model.topology import Link
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

pytestmark = pytest.mark.live

ENDS = (("a", "b"), ("b", "c"), ("c", "f"), ("a", "d"), ("d", "e"), ("e", "f"))
RATE_KB_PER_S = 60.0
BOUND_S = 1.5
ROUNDS = 40  # of 0.1 s
NOISE = 36  # messages of 1 KB a round: three times both ways


def plan(rates_kb_per_s: Mapping[tuple[str, str], float] = dict.fromkeys(ENDS, RATE_KB_PER_S)) -> FleetPlan:
    links = [
        Link(source=source, target=target, s_per_kb_mean=1.0 / rate_kb_per_s)
        for (one, other), rate_kb_per_s in rates_kb_per_s.items()
        for source, target in ((one, other), (other, one))
    ]
    names = sorted({name for ends in rates_kb_per_s for name in ends})
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    return FleetPlan(ports=ports, links=tuple(links), settings={"anonymous": True})


async def reserved(client: Client, topic: str, bandwidth: str, latency: str = "1s") -> ClientSubscription:
    """Subscribe with a guarantee, once the publisher is known at the other end."""
    while True:
        subscription = client.subscribe(topic, bandwidth=bandwidth, latency=latency, buffer=10_000)
        try:
            return await subscription.__aenter__()
        except SubscriptionRefusedError:  # links are not up yet; the test's own limit is the only one
            await asyncio.sleep(0.2)


async def hear(subscription: ClientSubscription, found: list[tuple[float, float]]) -> None:
    async for message in subscription:
        sent_s = float(message.payload[:20])
        found.append((sent_s, time.monotonic() - sent_s))


async def publish(publisher: Client, flood: Client) -> None:
    """Publish 20 KB/s of cars and bikes each, and noise beside them."""
    start_s = time.monotonic()
    for round_ in range(ROUNDS):
        for topic in ("cars", "bikes"):
            for _ in range(2):
                await publisher.publish(topic, f"{time.monotonic():20.6f}".ljust(900))
        for _ in range(NOISE):
            await flood.publish("noise", b"x" * 900)
        await asyncio.sleep(max(start_s + 0.1 * (round_ + 1) - time.monotonic(), 0.0))


def test_what_is_reserved_comes_in_time_and_what_is_not_does_not():
    network = plan()

    async def test() -> None:
        async with AsyncExitStack() as open_ones:
            address = {name: f"mqtt://{HOST}:{port}" for name, port in network.ports.items()}
            enter = open_ones.enter_async_context
            publisher = await enter(betimes.connect(address["a"], advertise={"cars": "25KB/s"}))
            flood, other = (
                await enter(betimes.connect(address["a"])),
                await enter(betimes.connect(address["f"])),
            )
            subscriber, second = [await enter(betimes.connect(address["f"])) for _ in range(2)]
            cars = await reserved(subscriber, "cars", "25KB/s")
            assert cars.answer.startswith("cars: 25KB/s reserved")
            fits = r"no bandwidth; (54|29)KB/s would fit"  # less while the links of the other way are not up
            with pytest.raises(SubscriptionRefusedError, match=fits):
                await second.subscribe("cars", bandwidth="70KB/s").__aenter__()
            bikes = await enter(second.subscribe("bikes", buffer=10_000))
            await enter(other.subscribe("noise", buffer=10))
            came: dict[str, list[tuple[float, float]]] = {"cars": [], "bikes": []}
            tasks = [
                asyncio.create_task(hear(cars, came["cars"])),
                asyncio.create_task(hear(bikes, came["bikes"])),
            ]
            await asyncio.sleep(1.0)
            await publish(publisher, flood)
            await asyncio.sleep(BOUND_S)
            in_time = {topic: sum(late_s < BOUND_S for _, late_s in found) for topic, found in came.items()}
            assert in_time["cars"] >= 0.99 * 2 * ROUNDS
            assert in_time["bikes"] < 0.7 * 2 * ROUNDS
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    with Fleet(network):
        run(test())


def test_what_a_killed_broker_carried_is_reserved_elsewhere():
    network = plan()

    async def test(fleet: Fleet) -> None:
        async with AsyncExitStack() as open_ones:
            address = {name: f"mqtt://{HOST}:{port}" for name, port in network.ports.items()}
            enter = open_ones.enter_async_context
            told = {"cars": "25KB/s", "bikes": "25KB/s"}
            publisher = await enter(betimes.connect(address["a"], advertise=told))
            subscriber = await enter(betimes.connect(address["f"]))
            cars = await reserved(subscriber, "cars", "30KB/s")
            second = await enter(betimes.connect(address["f"]))
            more = await reserved(second, "bikes", "40KB/s")  # does not fit beside: takes the other way
            os.kill(fleet.process_id("d"), signal.SIGKILL)
            states = [cars.reservations, more.reservations]
            # It does not fit beside the other, until that is given back. (A busy machine may answer too late
            # at first, and is then asked again.)
            await until(lambda: any("would fit" in news.why for each in states for news in each))
            heard = next(each for each in states if any("would fit" in news.why for news in each))
            assert heard[0].state == "interrupted"
            assert {news.state for news in heard if news.why} == {"refused"}
            kept, lost = (more, cars) if heard is cars.reservations else (cars, more)
            await kept.__aexit__(None, None, None)
            await until(lambda: heard[-1].state == "accepted")
            for topic in told:
                await publisher.publish(topic, "here")
            async for message in lost:
                assert message.payload == b"here"
                break

    with Fleet(network) as fleet:
        run(test(fleet))


def test_a_reservation_is_moved_for_who_needs_it_sooner_and_nothing_is_lost():
    slow = dict.fromkeys([("a", "d"), ("d", "e"), ("e", "f")], RATE_KB_PER_S / 3)
    network = plan({("a", "b"): RATE_KB_PER_S, ("b", "f"): RATE_KB_PER_S, **slow})

    async def test() -> None:
        async with AsyncExitStack() as open_ones:
            address = {name: f"mqtt://{HOST}:{port}" for name, port in network.ports.items()}
            enter = open_ones.enter_async_context
            told = {"cars": "10KB/s", "bikes": "50KB/s"}
            publisher = await enter(betimes.connect(address["a"], advertise=told))
            one, two, three = [await enter(betimes.connect(address["f"])) for _ in range(3)]
            bikes = await reserved(one, "bikes", "50KB/s")  # fit on the fast way only, and fill it
            loose = await reserved(two, "cars", "10KB/s")
            await bikes.__aexit__(None, None, None)
            assert loose.latency_s is not None
            bound_s, count = 0.6 * loose.latency_s, 30  # the fast way takes less than a quarter
            tight = asyncio.create_task(reserved(three, "cars", "10KB/s", f"{1000 * bound_s:.0f}ms"))
            for number in range(count):
                await publisher.publish("cars", str(number))
                await asyncio.sleep(0.1)
            await tight
            await until(lambda: bool(loose.reservations))
            assert loose.reservations[-1].state == "accepted"
            assert loose.latency_s is not None
            assert loose.latency_s <= bound_s
            found = []
            async for message in loose:
                found.append(int(message.payload))
                if len(found) == count:
                    break
            assert sorted(found) == list(range(count))

    with Fleet(network):
        run(test())
