"""Does a client that is cut off go on by itself, at its broker or another, with nothing lost or doubled?"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import AsyncExitStack

import pytest
from tests.client.cutting import relaying
from tests.client.test_connection import run
from tests.interop.brokers import HOST, running_broker

import betimes
from betimes.client.connection import Client, ClientSubscription
from betimes.client.errors import SubscriptionRefusedError, UnreachableError
from betimes.client.messages import Message
from betimes.model.buffer_settings import BufferSettings, PartitionTerms
from betimes.model.topology import Link
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports

pytestmark = pytest.mark.live


class Reader:
    """Takes all that a subscription brings, until it has so many."""

    def __init__(self, subscription: ClientSubscription) -> None:
        self.got: list[Message] = []
        self._subscription = subscription
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._subscription:
            self.got.append(message)

    async def has(self, count: int) -> None:
        while len(self.got) < count:
            if self._task.done():
                self._task.result()
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # whatever comes twice comes now
        self._task.cancel()

    @property
    def texts(self) -> list[str]:
        return [each.payload.decode() for each in self.got]


async def publish(client: Client, name: str, numbers: range, pause_s: float = 0.002) -> None:
    for number in numbers:
        await client.publish("t", f"{name}{number}")
        await asyncio.sleep(pause_s)


def test_a_subscriber_that_is_cut_off_again_and_again_misses_nothing():
    async def test():
        chance = random.Random(5)
        with running_broker(buffer=BufferSettings()) as broker:
            async with (
                relaying(broker.port) as relay,
                betimes.connect(f"mqtt://{HOST}:{broker.port}") as publisher,
                betimes.connect(f"mqtt://{HOST}:{relay.port}", reconnect="20s") as client,
                client.subscribe("t", mode="semi-durable") as subscription,
            ):
                reader = Reader(subscription)
                publishing = asyncio.create_task(publish(publisher, "", range(1_000)))
                cuts = 0
                while not publishing.done():
                    await asyncio.sleep(chance.uniform(0.02, 0.3))
                    cuts += relay.cut()
                await reader.has(1_000)
                assert reader.texts == [str(number) for number in range(1_000)]
                assert cuts > 3
                assert not subscription.gaps

    run(test())


def test_a_nondurable_subscriber_comes_back_too_and_misses_what_came_meanwhile():
    async def test():
        with running_broker() as broker:
            async with (
                relaying(broker.port) as relay,
                betimes.connect(f"mqtt://{HOST}:{broker.port}") as publisher,
                betimes.connect(f"mqtt://{HOST}:{relay.port}", reconnect="20s") as client,
                client.subscribe("t") as subscription,
            ):
                reader = Reader(subscription)
                relay.cut()
                while not reader.got:
                    await publisher.publish("t", "again")
                    await asyncio.sleep(0.02)
                await reader.has(1)

    run(test())


def test_what_was_overwritten_meanwhile_is_known():
    async def test():
        buffer = BufferSettings(partitions=(PartitionTerms(messages_max=3),))
        with running_broker(buffer=buffer) as broker:
            address = f"mqtt://{HOST}:{broker.port}"
            async with betimes.connect(address) as client:
                async with client.subscribe("t", mode="semi-durable") as subscription:
                    tokens = subscription.tokens()
                assert tokens == ["b1:0"]
                await publish(client, "", range(10))
                async with client.subscribe("t", mode="semi-durable", after=tokens) as subscription:
                    reader = Reader(subscription)
                    await reader.has(3)
                    assert reader.texts == ["7", "8", "9"]
                    (gap,) = subscription.gaps
                    assert (gap.origin, gap.first, gap.last, gap.why) == ("b1", 1, 7, "overwritten")
                    assert subscription.tokens() == ["b1:10"]

    run(test())


def test_a_token_that_the_broker_refuses_is_an_error_with_a_way_out():
    async def test():
        with running_broker(buffer=BufferSettings()) as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                with pytest.raises(SubscriptionRefusedError, match="fresh start"):
                    async with client.subscribe("t", mode="semi-durable", after=["b9:1"]):
                        pass

    run(test())


def test_a_broker_that_stays_away_is_given_up():
    async def test():
        with running_broker() as broker:
            async with relaying(broker.port) as relay:
                address = f"mqtt://{HOST}:{relay.port}"
                async with (
                    betimes.connect(address, reconnect="300ms") as client,
                    client.subscribe("t") as own,
                ):
                    reader = Reader(own)
                    relay.close()
                    with pytest.raises(UnreachableError):
                        await reader.has(1)

    run(test())


def test_the_first_broker_that_answers_is_taken():
    async def test():
        (nobody,) = free_ports(1)
        with running_broker() as broker:
            addresses = [f"mqtt://{HOST}:{nobody}", f"mqtt://{HOST}:{broker.port}"]
            async with betimes.connect(addresses) as client:
                await client.publish("t", "x", qos=1)

    run(test())


@pytest.fixture(scope="module")
def pair() -> FleetPlan:
    """Two linked brokers that keep everything; each test starts them for itself."""
    ports = dict(zip(("a", "b"), free_ports(2), strict=True))
    link = Link(source="a", target="b", s_per_kb_mean=0.0)
    return FleetPlan(ports=ports, links=(link,), settings={"anonymous": True}, fetch=("#",))


async def linked(ports: list[int]) -> None:
    """Wait until what is published at one broker arrives at the other."""
    async with (
        betimes.connect(f"mqtt://{HOST}:{ports[0]}") as near,
        betimes.connect(f"mqtt://{HOST}:{ports[1]}") as far,
        far.subscribe("hello") as heard,
    ):
        reader = Reader(heard)
        while not reader.got:
            await near.publish("hello")
            await asyncio.sleep(0.05)
        await reader.has(1)


def test_subscribers_that_wander_between_two_brokers_lose_and_double_nothing(pair):
    async def test():
        chance = random.Random(11)
        ports = list(pair.ports.values())
        await linked(ports)
        await linked(ports[::-1])
        async with AsyncExitStack() as stack:
            relays = [[await stack.enter_async_context(relaying(port)) for port in ports] for _ in range(8)]
            readers = []
            for number, own in enumerate(relays):
                addresses = [f"mqtt://{HOST}:{each.port}" for each in (own if number % 2 else own[::-1])]
                client = await stack.enter_async_context(betimes.connect(addresses, reconnect="20s"))
                subscription = client.subscribe("t", mode="semi-durable")
                readers.append(Reader(await stack.enter_async_context(subscription)))
            await asyncio.sleep(0.5)  # until both brokers know of them
            publishers = [
                await stack.enter_async_context(betimes.connect(f"mqtt://{HOST}:{port}"))
                for port in (*ports, ports[0])
            ]
            publishing = asyncio.gather(
                *(publish(each, name, range(500)) for each, name in zip(publishers, "xyz", strict=True))
            )
            cuts = 0
            while not publishing.done():
                await asyncio.sleep(chance.uniform(0.01, 0.1))
                cuts += sum(each.cut() for each in chance.choice(relays))
            await asyncio.gather(*(each.has(1_500) for each in readers))
            assert cuts > 10
            for reader in readers:
                assert len(reader.texts) == len(set(reader.texts)) == 1_500
                for name in "xyz":  # in no hurry, so that the order is kept on links too
                    flow = [int(text[1:]) for text in reader.texts if text.startswith(name)]
                    assert flow == sorted(flow)

    with Fleet(pair):
        run(test())


def test_subscribers_of_a_broker_that_is_killed_go_on_at_the_other(pair):
    async def test(fleet: Fleet):
        ports = list(pair.ports.values())
        await linked(ports)
        await linked(ports[::-1])
        addresses = [f"mqtt://{HOST}:{port}" for port in ports]
        async with AsyncExitStack() as stack:
            readers = []
            for _ in range(5):
                client = await stack.enter_async_context(betimes.connect(addresses, reconnect="20s"))
                subscription = client.subscribe("t", mode="semi-durable")
                readers.append(Reader(await stack.enter_async_context(subscription)))
            doomed = await stack.enter_async_context(betimes.connect(addresses[0]))
            staying = await stack.enter_async_context(betimes.connect(addresses[1]))
            await asyncio.sleep(0.5)
            publishing = asyncio.create_task(publish(staying, "y", range(1_000)))
            await publish(doomed, "x", range(100))
            await asyncio.sleep(0.2)  # what was published there has gone to the other
            os.kill(fleet.process_id("a"), signal.SIGKILL)
            await publishing
            await asyncio.gather(*(each.has(1_100) for each in readers))
            for reader in readers:
                for name, count in (("x", 100), ("y", 1_000)):
                    flow = [int(text[1:]) for text in reader.texts if text.startswith(name)]
                    assert flow == list(range(count))

    with Fleet(pair) as fleet:
        run(test(fleet))
