"""Does who publishes in full flight wait for readers that can follow, and for no others?"""

from __future__ import annotations

import asyncio

import mqtt5
import pytest
from tests.broker.listening import Caller, calling, run, serving, subscribe, until

from betimes.broker.delivery.flow import FULL_SPEED_BYTES
from betimes.model.telemetry import Reason

PACKET = mqtt5.PublishPacket("t", b"x" * 256).write()
MANY = 2_000  # packets of one publisher


async def count(reader: Caller, wanted: int) -> int:
    """Read until so many packets have come, all of one length."""
    got = 0
    while got < wanted * len(PACKET):
        got += len(await reader.reader.read(1_000_000))
    return got // len(PACKET)


@pytest.mark.live
def test_a_hundred_publishers_at_once_overrun_no_reader_that_follows():
    async def test():
        async with serving(queue_bytes_max=1_000_000) as listener, calling(listener, "sub") as sub:
            await sub.ask(subscribe("t"))
            publishers = [calling(listener, f"pub{number}") for number in range(50)]
            for each in publishers:
                (await each.__aenter__()).writer.write(PACKET * MANY)
            assert await count(sub, 50 * MANY) == 50 * MANY
            assert not listener.hub.counters.lost
            assert listener.hub.counters.pauses > 0
            for each in publishers:
                await each.__aexit__(None, None, None)

    run(test())


@pytest.mark.live
def test_nobody_waits_for_a_reader_that_takes_nothing():
    async def test():
        async with (
            serving(queue_bytes_max=1_000_000) as listener,
            calling(listener, "stuck") as stuck,
            calling(listener, "quick") as quick,
            calling(listener, "pub") as pub,
        ):
            for each in (stuck, quick):
                await each.ask(subscribe("t"))
            reading = asyncio.create_task(count(quick, 20 * MANY))
            for _ in range(20):
                pub.writer.write(PACKET * MANY)
                await pub.writer.drain()
            assert await reading == 20 * MANY
            assert listener.hub.sessions["stuck"].is_given_up
            assert set(listener.hub.counters.lost) == {Reason.QUEUE_FULL}
            late = asyncio.create_task(count(stuck, 20 * MANY + MANY - listener.hub.counters.lost.total()))
            await until(lambda: not listener.hub.sessions["stuck"].queue_bytes)
            pub.writer.write(PACKET * MANY)  # it has caught up, and is waited for again
            await count(quick, MANY)
            await late
            assert not listener.hub.sessions["stuck"].is_given_up

    run(test())


@pytest.mark.live
def test_what_waits_is_taken_in_when_its_sender_hangs_up():
    async def test():
        async with serving() as listener, calling(listener, "stuck") as stuck:
            await stuck.ask(subscribe("t"))
            packets = -(-FULL_SPEED_BYTES // len(PACKET))
            async with calling(listener, "pub") as pub:
                for _ in range(200):
                    pub.writer.write(PACKET * packets)
                    await asyncio.sleep(0)
                pub.writer.close()
                await until(lambda: len(listener.lines) == 1)
            assert listener.hub.counters.received == 200 * packets

    run(test())


@pytest.mark.live
def test_who_sends_little_never_waits():
    async def test():
        async with (
            serving() as listener,
            calling(listener, "stuck") as stuck,
            calling(listener, "quick") as quick,
            calling(listener, "pub") as pub,
        ):
            for each in (stuck, quick):
                await each.ask(subscribe("t"))
            for _ in range(3_000):
                pub.writer.write(PACKET * 10)
                assert await count(quick, 10) == 10
            assert listener.hub.outboxes.backpressure._slow
            assert listener.hub.counters.pauses == 0

    run(test())
