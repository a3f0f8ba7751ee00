"""Does a slow client get what is worth most in time, and not what cannot be?"""

from __future__ import annotations

import asyncio
import json
import socket
import time

import mqtt5
import pytest
from tests.broker.listening import calling, run, serving
from tests.broker.talking import Client, new_hub

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.scheduled_queue import (
    BELOW_US_BYTES_MAX,
    BELOW_US_BYTES_MIN,
    ScheduledQueue,
    warm_up,
)
from betimes.model.telemetry import Reason


def delivery(number=1, *, bound_s=10.0, price=1.0, born_s=0.0, size=800):
    packet = mqtt5.PublishPacket("news", b"x" * size)
    publication = Publication(packet, "news", born_s=born_s, origin="a", number=number)
    return Delivery(publication, told=True, bound_s=bound_s, price=price)


def order(scheduled: ScheduledQueue, now_s: float) -> tuple[list[int], list[int]]:
    """Take out everything as it would be sent; return numbers of what goes, and of what was given up."""
    goes, given_up = [], []
    while len(scheduled):
        chosen, hopeless = scheduled.choose(now_s)
        given_up += [each.publication.number for each in hopeless]
        for slot in chosen:
            looked_at = scheduled.look_at(slot)
            assert scheduled.take(slot, now_s) is looked_at
            goes.append(looked_at.publication.number)
    return goes, given_up


def test_many_are_chosen_at_once_as_they_would_be_one_by_one():
    one_by_one, at_once = ScheduledQueue(), ScheduledQueue()
    for number in range(1, 101):
        for each in (one_by_one, at_once):
            each.put(delivery(number, price=float(number % 7), bound_s=5.0 + number % 3), 0.0)
    chosen, _ = at_once.choose(1.0, room=100)
    numbers = [at_once.look_at(slot).publication.number for slot in chosen]
    assert (numbers, []) == order(one_by_one, 1.0)


@pytest.mark.long
def test_a_client_with_a_price_that_reads_late_stalls_nobody(monkeypatch):
    hub = new_hub()
    late, publisher = Client(hub, "late"), Client(hub, "publisher")
    late.subscribe("t", properties={"price": "2"})
    late.connection.flow.blocked = True
    for _ in range(5_000):
        publisher.publish("t", b"x")
    session, looks = hub.sessions["late"], 0
    assert session.scheduled is not None
    choose = session.scheduled.choose

    def counted(now_s: float, room: int = 1) -> tuple[list[int], list[Delivery]]:
        nonlocal looks
        looks += 1
        return choose(now_s, room)

    monkeypatch.setattr(session.scheduled, "choose", counted)
    got = 0
    while got < 5_000:
        late.connection.drained(1.0)
        got += len(late.read())
    assert looks < 50  # each looks at all that waits


def test_what_is_worth_more_goes_first_and_equals_in_order():
    scheduled = ScheduledQueue()
    for number, price in enumerate([1.0, 5.0, 1.0, 9.0], start=1):
        scheduled.put(delivery(number, price=price), 0.0)
    assert order(scheduled, 0.0) == ([4, 2, 1, 3], [])


def test_what_cannot_be_in_time_is_given_up_before_it_is_late():
    scheduled = ScheduledQueue()
    scheduled.observe(size_kb=10.0, took_s=10.0)  # a second for a kilobyte
    scheduled.put(delivery(1, bound_s=2.0), 0.0)
    scheduled.put(delivery(2, bound_s=60.0), 0.0)
    assert order(scheduled, 1.5) == ([2], [1])


def test_little_waits_below_us_for_a_slow_client():
    scheduled = ScheduledQueue()
    for _ in range(100):
        scheduled.observe(size_kb=10.0, took_s=0.2)  # 50 KB/s
    assert scheduled.below_us_bytes == pytest.approx(5_000, rel=0.01)
    for _ in range(500):
        scheduled.observe(size_kb=10.0, took_s=100.0)
    assert scheduled.below_us_bytes == BELOW_US_BYTES_MIN
    fast = ScheduledQueue()
    fast.observe(size_kb=10.0, took_s=1e-6)
    fast.observe(size_kb=0.0, took_s=1.0)  # nothing drained: nothing learnt
    assert fast.below_us_bytes == BELOW_US_BYTES_MAX


def test_what_is_late_can_be_weeded_out_and_all_taken_out():
    scheduled = ScheduledQueue()
    scheduled.put(delivery(1, bound_s=1.0), 0.0)
    scheduled.put(delivery(2, bound_s=9.0), 0.0)
    assert [each.publication.number for each in scheduled.take_expired(5.0)] == [1]
    assert [each.publication.number for each in scheduled.take_all(5.0)] == [2]
    assert len(scheduled) == 0


def test_a_client_that_was_blocked_gets_the_dear_ones_first():
    hub = new_hub()
    alice = Client(hub, "alice")
    alice.subscribe("gold", properties={"price": "9", "max-delay": "60s"})
    alice.subscribe("tin", properties={"price": "1", "max-delay": "60s"})
    bob = Client(hub, "bob")
    alice.connection.flow.blocked = True
    for number in range(3):
        bob.publish("tin", str(number).encode())
        bob.publish("gold", str(number).encode())
    alice.connection.drained(1.0)
    assert [topic for topic, _ in alice.got()] == ["gold"] * 3 + ["tin"] * 3
    assert hub.sessions["alice"].queue_bytes == 0


def test_without_bounds_and_prices_order_is_kept():
    hub = new_hub()
    alice = Client(hub, "alice")
    alice.subscribe("#", properties={"filter": "x IS NULL"})
    assert hub.sessions["alice"].scheduled is None


def test_what_expires_in_the_queue_is_counted():
    hub = new_hub()
    alice = Client(hub, "alice")
    alice.subscribe("news", properties={"max-delay": "1s"})
    alice.connection.flow.blocked = True
    Client(hub, "bob").publish("news")
    alice.connection.drained(5.0)
    assert (alice.got(), hub.counters.lost) == ([], {Reason.EXPIRED: 1})


@pytest.mark.live
def test_a_slow_reader_gets_messages_in_time_and_nobody_else_waits():
    """A client that reads 200 KB/s is offered 1 MB/s, with a bound of one second."""

    async def test():
        async with serving() as listener:
            slow = socket.socket()
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)  # what is there is as good as read
            slow.connect(("127.0.0.1", listener.ports[0]))
            slow.setblocking(False)
            loop = asyncio.get_running_loop()
            subscribe = mqtt5.SubscribePacket(
                1, [mqtt5.TopicFilter("news")], user_properties=[("max-delay", "1s")]
            )
            await loop.sock_sendall(
                slow, mqtt5.ConnectPacket("slow", clean_start=True).write() + subscribe.write()
            )
            await asyncio.sleep(0.2)
            publishing = asyncio.create_task(publish(listener.ports[0]))
            ages = await read_slowly(loop, slow, for_s=4.0)
            await publishing
            slow.close()
            assert len(ages) > 100
            # In order of coming, 1 MB/s into 200 KB/s would be more than two seconds behind by now.
            assert sorted(ages[len(ages) // 2 :])[len(ages) // 4] < 1.5
            assert (
                listener.hub.counters.lost[Reason.HOPELESS] + listener.hub.counters.lost[Reason.EXPIRED] > 100
            )

    run(test())


async def publish(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(mqtt5.ConnectPacket("fast", clean_start=True).write())
    await reader.read(100)
    for _ in range(400):
        for _ in range(10):
            told = json.dumps(time.monotonic()).encode().ljust(1_000)
            writer.write(mqtt5.PublishPacket("news", told).write())
        await writer.drain()
        await asyncio.sleep(0.01)
    writer.close()


async def read_slowly(loop: asyncio.AbstractEventLoop, slow: socket.socket, *, for_s: float) -> list[float]:
    """Read 200 KB/s, and return the ages of what came."""
    rest, ages, end_s = b"", [], time.monotonic() + for_s
    while time.monotonic() < end_s:
        rest += await loop.sock_recv(slow, 2_000)
        await asyncio.sleep(0.01)
        while True:
            try:
                packet, size = mqtt5.read(memoryview(rest))
            except IndexError:
                break
            rest = rest[size:]
            if isinstance(packet, mqtt5.PublishPacket):
                ages.append(time.monotonic() - json.loads(packet.payload))
    return ages


def test_warming_up_leaves_nothing_to_compile_and_no_trace():
    warm_up()
    hop = ScheduledQueue()
    assert len(hop) == 0


@pytest.mark.live
def test_others_have_their_turns_while_much_goes_to_who_reads_late():
    async def test():
        async with (
            serving() as listener,
            calling(listener, "late") as late,
            calling(listener, "other") as other,
        ):
            wish = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t")], user_properties=[("price", "2")])
            await late.ask(wish)
            while listener.hub.sessions["late"].queue_bytes < 4_000_000:  # it reads nothing
                other.writer.write(mqtt5.PublishPacket("t", b"x" * 100).write() * 100)
                await asyncio.sleep(0)
            reading = asyncio.create_task(late.reader.read(1 << 24))
            assert isinstance(await other.ask(mqtt5.PingReqPacket()), mqtt5.PingRespPacket)
            assert listener.hub.sessions["late"].queue_bytes > 0
            await reading

    run(test())
