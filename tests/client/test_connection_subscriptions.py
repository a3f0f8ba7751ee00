"""Does a subscription keep what waits within bounds, and hand out only what is not too old?"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.interop.brokers import HOST, WITHIN_S, running_broker

import betimes
from betimes.client import subscription_buffer
from betimes.client.messages import Message

pytestmark = pytest.mark.live


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, WITHIN_S))


def test_what_overflows_is_the_oldest_and_is_counted():
    async def test():
        with running_broker() as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                async with client.subscribe("t", buffer=3) as sub:
                    for number in range(10):
                        await client.publish("t", str(number))
                    while client.dropped < 7:
                        await asyncio.sleep(0.01)
                    got = []
                    async for message in sub:
                        got.append(int(message.payload))
                        if len(got) == 3:
                            break
                    assert got == [7, 8, 9]
                assert client.dropped == 7

    run(test())


def test_the_buffer_is_bounded_in_bytes_too(monkeypatch):
    monkeypatch.setattr(subscription_buffer, "BUFFER_BYTES_MAX", 100)

    async def test():
        with running_broker() as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                sub = client.subscribe("t")
                for size in (60, 40, 60, 500):
                    sub.take(Message(topic="t", payload=b"x" * size), 0.0)
                assert sub.dropped == 3
                assert sub._waiting_bytes == 500

    run(test())


def test_age_goes_on_while_a_message_waits_here_and_what_is_too_old_is_not_handed_out():
    async def test():
        with running_broker() as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                async with client.subscribe("t", max_delay="300ms") as bound, client.subscribe("#") as free:
                    await client.publish("t", "old", qos=1)
                    await asyncio.sleep(0.4)
                    await client.publish("t", "new", qos=1)
                    async for message in bound:
                        assert message.payload == b"new"
                        break
                    async for message in free:
                        assert message.payload == b"old"
                        assert message.age_s is not None
                        assert message.age_s >= 0.4
                        break
                assert (client.late, client.dropped) == (1, 0)

    run(test())


def test_leaving_the_loop_unsubscribes():
    async def test():
        with running_broker() as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}?client_id=c") as client:
                await client.publish("t", "kept", qos=1, retain=True)
                async for _ in client.subscribe("t"):
                    assert list(broker.hub.sessions["c"].subscriptions) == ["t"]
                    break
                while broker.hub.sessions["c"].subscriptions:
                    await asyncio.sleep(0.01)
                async for message in client.subscribe("t"):  # and it can be asked for again
                    assert message.retain
                    break

    run(test())


def test_a_subscription_ends_with_its_client():
    async def test():
        with running_broker() as broker:
            got = []

            async def listen(client: Any) -> None:
                async for message in client.subscribe("t", qos=1):
                    got.append(message.payload)

            async with betimes.connect(f"mqtt://{HOST}:{broker.port}?client_id=c") as client:
                listening = asyncio.create_task(listen(client))
                while not broker.hub.sessions["c"].subscriptions:
                    await asyncio.sleep(0.01)
                await client.publish("t", "last", qos=1)
                while not got:
                    await asyncio.sleep(0.01)
            await listening
            assert got == [b"last"]

    run(test())
