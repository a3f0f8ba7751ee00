"""Are others served while some flood the server, fall asleep or read nothing?"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import mqtt5
import pytest
from tests.broker.listening import Caller, calling, run, serving, until

from betimes.broker.delivery.outbox import Outbox

pytestmark = pytest.mark.live

QUOTA_EXCEEDED, PACKET_TOO_LARGE = 0x97, 0x95


async def subscribed(caller: Caller, topic: str = "good") -> None:
    caller.write(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter(topic)]))
    assert isinstance(await caller.read(), mqtt5.SubAckPacket)


async def check_served(publisher: Caller, subscriber: Caller, count: int = 50) -> None:
    for number in range(count):
        publisher.write(mqtt5.PublishPacket("good", str(number).encode()))
    for number in range(count):
        assert (await subscriber.read()).payload == str(number).encode()


def test_a_flood_of_subscriptions_ends_at_the_limit():
    async def test():
        async with serving(subscriptions_max=100) as listener, AsyncExitStack() as stack:
            flooding = await stack.enter_async_context(calling(listener, "flooding"))
            publisher = await stack.enter_async_context(calling(listener, "publisher"))
            subscriber = await stack.enter_async_context(calling(listener, "subscriber"))
            await subscribed(subscriber)
            codes: list[int] = []
            for packet in range(50):
                filters = [mqtt5.TopicFilter(f"flood/{packet}/{number}/#") for number in range(20)]
                flooding.write(mqtt5.SubscribePacket(packet + 1, filters))
            served = asyncio.create_task(check_served(publisher, subscriber))
            for _ in range(50):
                codes += [code.value for code in (await flooding.read()).reason_codes]
            await served
            assert codes == [2] * 100 + [QUOTA_EXCEEDED] * 900
            assert listener.hub.held[0] == 101
            flooding.write(mqtt5.UnsubscribePacket(1, ["flood/0/0/#"]))
            await flooding.read()
            flooding.write(mqtt5.SubscribePacket(2, [mqtt5.TopicFilter("flood/again")]))
            assert [code.value for code in (await flooding.read()).reason_codes] == [2]

    run(test())


@pytest.mark.parametrize("connects_first", [True, False])
def test_a_flood_of_huge_packets_is_refused_by_their_first_bytes(connects_first):
    async def test():
        async with serving(packet_bytes_max=10_000) as listener, AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(calling(listener, "publisher"))
            subscriber = await stack.enter_async_context(calling(listener, "subscriber"))
            await subscribed(subscriber)

            async def flood(number: int) -> Any:
                async with calling(listener, f"f{number}" if connects_first else "") as caller:
                    first = b"\x30" if connects_first else b"\x10"
                    caller.writer.write(first + b"\xff\xff\xff\x7f" + bytes(1000))  # 256 MB are to follow
                    goodbye = await caller.read()
                    assert await caller.read() is None
                    return goodbye

            flooding = asyncio.gather(*(flood(number) for number in range(100)))
            await check_served(publisher, subscriber)
            kind = mqtt5.DisconnectPacket if connects_first else mqtt5.ConnAckPacket
            for goodbye in await flooding:
                assert isinstance(goodbye, kind)
                assert goodbye.reason_code.value == PACKET_TOO_LARGE
            await until(lambda: len(listener.lines) == 2)

    run(test())


def test_what_is_kept_of_packets_that_never_end_is_bounded():
    async def test():
        async with serving(packet_bytes_max=10_000) as listener, AsyncExitStack() as stack:
            callers = [
                await stack.enter_async_context(calling(listener, f"c{number}")) for number in range(20)
            ]
            for caller in callers:
                caller.writer.write(b"\x30\xf0\x4d" + bytes(9000))  # of 9,968
            await until(lambda: all(kept(each) for each in listener.lines))
            assert sum(kept(each) for each in listener.lines) <= 20 * 10_000

    run(test())


def kept(connection: Outbox) -> int:
    return len(connection.wire._rest)


def test_who_reads_nothing_holds_up_nobody_and_costs_no_more_than_its_queue():
    async def test():
        limit = 100_000
        async with serving(queue_bytes_max=limit) as listener, AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(calling(listener, "publisher"))
            subscriber = await stack.enter_async_context(calling(listener, "subscriber"))
            deaf = await stack.enter_async_context(calling(listener, "deaf"))
            await subscribed(subscriber)
            await subscribed(deaf, "#")
            deaf.reader._limit = 1  # type: ignore[attr-defined]  # asyncio reads no further than twice this
            payload = bytes(10_000)
            for _ in range(1000):
                publisher.write(mqtt5.PublishPacket("noise", payload))
                await publisher.writer.drain()
            await check_served(publisher, subscriber)
            session = listener.hub.sessions["deaf"]
            await until(lambda: listener.hub.counters.lost)
            assert session.queue_bytes <= limit
            await check_served(publisher, subscriber)

    run(test())
