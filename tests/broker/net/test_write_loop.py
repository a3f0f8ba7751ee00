"""Does nobody hear of what is not committed, and nobody wait where there is nothing to commit?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mqtt5
import pytest
from tests.broker.keeping import Shelf, kept_hub
from tests.broker.listening import Caller, calling, new_listener, run

from betimes.broker.durability.store import SET_ASIDE, Store
from betimes.broker.net.listener import Endpoint, Listener
from betimes.broker.storage.sqlite_file import StoreError

pytestmark = pytest.mark.live

LASTING: dict[str, Any] = {"session_expiry_interval": 3600}


@asynccontextmanager
async def keeping(shelf: Shelf, **limits: Any) -> AsyncIterator[tuple[Listener, Store, asyncio.Event]]:
    now_s = asyncio.get_running_loop().time()
    hub, store = kept_hub(shelf, now_s=now_s, wall_s=time.time(), **limits)
    broken = asyncio.Event()
    listener = new_listener(hub, store=store, broken=broken.set)
    await listener.start([Endpoint(port=0)])
    try:
        yield listener, store, broken
    finally:
        await listener.stop()


async def subscribed(caller: Caller) -> None:
    filters = [mqtt5.TopicFilter("t", max_qos=mqtt5.QoS.EXACTLY_ONCE)]
    assert isinstance(await caller.ask(mqtt5.SubscribePacket(1, filters)), mqtt5.SubAckPacket)


def message(number: int, qos: int = 1) -> mqtt5.PublishPacket:
    packet_id = number if qos else None
    return mqtt5.PublishPacket("t", str(number).encode(), qos=mqtt5.QoS(qos), packet_id=packet_id)


def test_what_is_acknowledged_is_committed():
    async def test():
        shelf = Shelf()
        async with keeping(shelf) as (listener, _, _), calling(listener, "sub", **LASTING) as sub:
            assert shelf.count("sessions") == 1
            await subscribed(sub)
            assert shelf.count("subscriptions") == 1
            async with calling(listener, "pub", **LASTING) as pub:
                for number in range(1, 10):
                    assert isinstance(await pub.ask(message(number)), mqtt5.PubAckPacket)
                    assert shelf.count("deliveries") == number
                assert isinstance(await pub.ask(message(10, qos=2)), mqtt5.PubRecPacket)
                assert (shelf.count("deliveries"), shelf.count("incoming")) == (10, 1)
                assert isinstance(await pub.ask(mqtt5.PubRelPacket(10)), mqtt5.PubCompPacket)
                assert shelf.count("incoming") == 0

    run(test())


def test_many_messages_that_come_together_are_one_commit():
    async def test():
        shelf = Shelf()
        async with keeping(shelf) as (listener, _, _), calling(listener, "sub", **LASTING) as sub:
            await subscribed(sub)
            async with calling(listener, "pub") as pub:
                commits = shelf.commits
                pub.write(*(message(number) for number in range(1, 101)))
                for _ in range(100):
                    await pub.read()
                assert shelf.count("deliveries") == 100
                assert shelf.commits - commits < 10

    run(test())


def test_what_waited_for_room_in_a_socket_is_committed_before_it_is_sent():
    async def test():
        shelf = Shelf()
        async with keeping(shelf) as (listener, _, _), calling(listener, "sub", **LASTING) as sub:
            await subscribed(sub)
            async with calling(listener, "pub") as pub:
                big = b"x" * 100_000
                for number in range(1, 21):
                    packet = mqtt5.PublishPacket("t", big, qos=mqtt5.QoS(1), packet_id=number)
                    assert isinstance(await pub.ask(packet), mqtt5.PubAckPacket)
            for number in range(1, 21):
                packet = await sub.read()
                rows = shelf.tables["deliveries"].values()
                (row,) = [each for each in rows if each[10] == packet.packet_id]
                assert row[0] == number

    run(test())


def test_quality_0_makes_no_commit():
    async def test():
        shelf = Shelf()
        async with keeping(shelf) as (listener, _, _), calling(listener, "sub", **LASTING) as sub:
            await subscribed(sub)
            async with calling(listener, "pub") as pub:
                commits = shelf.commits
                pub.write(*(message(number, qos=0) for number in range(50)))
                for _ in range(50):
                    await sub.read()
                assert shelf.commits == commits

    run(test())


def test_when_nothing_can_be_committed_nobody_is_answered_and_all_are_cut_off():
    async def test():
        shelf = Shelf()

        def refuse(_changes: object) -> None:
            raise StoreError("s.db", "cannot be written any more", "make room")

        async with keeping(shelf) as (listener, store, broken), calling(listener, "sub", **LASTING) as sub:
            await subscribed(sub)
            async with calling(listener, "pub") as pub:
                store._write = refuse
                pub.write(message(1))
                assert [await ending(each) for each in (pub, sub)] == [None, None]
                await broken.wait()
                assert "cannot be written" in str(listener.failure)

    run(test())


async def ending(caller: Caller) -> Any:
    """Return the next packet, None where the connection ends, clean or not."""
    try:
        return await caller.read()
    except ConnectionError:
        return None


def test_numbers_are_set_aside_while_it_runs():
    async def test():
        shelf = Shelf()
        async with keeping(shelf) as (listener, _, _):
            before = shelf.tables["facts"][(SET_ASIDE,)]
            listener.hub.counters.received += 2_000_000
            while shelf.tables["facts"][(SET_ASIDE,)] == before:
                await asyncio.sleep(0.01)

    run(test())
