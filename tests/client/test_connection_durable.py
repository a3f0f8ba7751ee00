"""Does a durable subscriber that is cut off go on at the next broker, with nothing lost or doubled?"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack

import pytest
from tests.client.cutting import relaying
from tests.client.test_connection import run
from tests.client.test_connection_resumes import Reader
from tests.interop.brokers import HOST, running_broker

import betimes
from betimes.client.connection import Client
from betimes.model.errors import SettingError
from betimes.model.topology import Link
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports

pytestmark = pytest.mark.live

MESSAGES = 400


def test_a_durable_subscription_needs_a_session():
    async def test():
        with running_broker() as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                with pytest.raises(SettingError, match="session"):
                    client.subscribe("t", mode="durable", qos=1)

    run(test())


async def publish(client: Client, name: str) -> None:
    for number in range(MESSAGES):
        await client.publish("t", f"{name}{number}", qos=2)
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("qos", [1, 2])
def test_a_durable_subscriber_that_wanders_between_two_brokers_loses_nothing(qos):
    ports = dict(zip(("a", "b"), free_ports(2), strict=True))
    link = Link(source="a", target="b", s_per_kb_mean=0.0)
    settings = {"anonymous": True, "buffer.keep": False}

    async def test():
        await asyncio.sleep(1.0)  # the brokers link
        chance = random.Random(3)
        async with AsyncExitStack() as stack:
            relays = [await stack.enter_async_context(relaying(port)) for port in ports.values()]
            addresses = [f"mqtt://{HOST}:{each.port}" for each in relays]
            client = await stack.enter_async_context(
                betimes.connect(addresses, reconnect="20s", session="1h")
            )
            subscription = client.subscribe("t", mode="durable", qos=qos)
            reader = Reader(await stack.enter_async_context(subscription))
            await asyncio.sleep(0.5)  # until both brokers know of it
            publishers = [
                await stack.enter_async_context(betimes.connect(f"mqtt://{HOST}:{port}"))
                for port in ports.values()
            ]
            publishing = asyncio.gather(
                *(publish(each, name) for each, name in zip(publishers, "xy", strict=True))
            )
            cuts = 0
            while not publishing.done():
                await asyncio.sleep(chance.uniform(0.1, 0.5))
                cuts += sum(each.cut() for each in relays)
            await reader.has(2 * MESSAGES)
            assert cuts >= 3
            assert set(reader.texts) == {f"{name}{number}" for name in "xy" for number in range(MESSAGES)}
            if qos == 2:
                assert len(reader.texts) == 2 * MESSAGES

    with Fleet(FleetPlan(ports=ports, links=(link,), settings=settings)):
        run(test())
