"""Is what is refused for now asked for again, within bounds, and is the subscriber told?"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest
from tests.broker.listening import run, until

import betimes
from betimes.client.connection import Client, ClientSubscription
from betimes.client.effects import AwaitWritten, Flow, Wait
from betimes.client.errors import RefusedError, SubscriptionRefusedError
from betimes.client.request import ask
from betimes.client.resubscribing import PAUSE_S_MAX, PAUSE_S_MIN, BackOff, ask_for_all
from betimes.model.topology import Link
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

RESERVED = [("bandwidth", "20KB/s"), ("latency", "10ms")]
FOR_NOW = SubscriptionRefusedError("cars", 0x97, "Quota exceeded", "nobody publishes this", is_definite=False)
FOR_GOOD = SubscriptionRefusedError("cars", 0x97, "Quota exceeded", "no bandwidth")


class Broker:
    """Answers as it is told, one answer after the other, the last for ever."""

    def __init__(self, *answers: RefusedError | list[tuple[str, str]]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, subscription: ClientSubscription, _identifier: int) -> Flow:
        self.asked += 1
        yield AwaitWritten()
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, RefusedError):
            raise answer
        subscription.answered(answer)


def asked_again(broker: Broker, *, for_s: float = 10.0, is_open: bool = True) -> list[tuple[str, str]]:
    """Return what a subscriber is told that had a reservation when its connection broke; no time passes."""
    subscription = ClientSubscription(cast(Any, None), ask("cars", bandwidth="20KB/s"), buffer=1)
    subscription.is_reserved = True
    clock = [0.0]
    wanted = {1: subscription}
    opened = wanted if is_open else {}
    for effect in ask_for_all(wanted, opened, broker, end_s=for_s, now_s=lambda: clock[0]):
        if isinstance(effect, Wait):
            clock[0] += effect.pause_s
    return [(each.state, each.why) for each in subscription.reservations]


def test_pauses_grow_and_end():
    back_off = BackOff(100.0)
    pauses = [back_off.pause_s(0.0) for _ in range(10)]
    assert pauses[:3] == [PAUSE_S_MIN, 2 * PAUSE_S_MIN, 4 * PAUSE_S_MIN]
    assert pauses[-1] == PAUSE_S_MAX
    assert back_off.pause_s(100.0 - PAUSE_S_MAX) == PAUSE_S_MAX
    assert back_off.pause_s(100.1 - PAUSE_S_MAX) is None


def test_what_is_refused_for_now_is_asked_for_until_it_is_there_and_told_once():
    broker = Broker(FOR_NOW, FOR_NOW, RESERVED)
    told = asked_again(broker)
    assert told == [("refused", "nobody publishes this"), ("accepted", "")]
    assert broker.asked == 3


def test_what_stays_refused_to_the_end_is_raised():
    broker = Broker(FOR_NOW)
    with pytest.raises(SubscriptionRefusedError, match="nobody publishes"):
        asked_again(broker, for_s=0.5)
    assert 2 < broker.asked < 10


def test_what_is_refused_for_good_is_not_asked_for_again():
    broker = Broker(FOR_NOW, FOR_GOOD)
    with pytest.raises(SubscriptionRefusedError, match="no bandwidth"):
        asked_again(broker)
    assert broker.asked == 2


def test_a_broker_that_reserves_nothing_is_told_as_a_refusal_and_who_was_closed_is_not_asked_for():
    assert [state for state, _ in asked_again(Broker([]))] == ["refused"]
    broker = Broker(RESERVED)
    assert asked_again(broker, is_open=False) == []
    assert broker.asked == 0


@pytest.mark.live
def test_a_guarantee_is_there_again_after_its_broker_was_killed_and_its_publisher_came_back_later():
    ports = dict(zip("ab", free_ports(2), strict=True))
    links = [Link(source=one, target=other, s_per_kb_mean=1.0 / 60.0) for one, other in ("ab", "ba")]
    network = FleetPlan(ports=ports, links=tuple(links), settings={"anonymous": True})
    address = {name: f"mqtt://{HOST}:{port}" for name, port in ports.items()}
    told = {"cars": "20KB/s"}

    async def test(fleet: Fleet) -> None:
        async with AsyncExitStack() as open_ones:
            subscriber = await open_ones.enter_async_context(betimes.connect(address["b"], reconnect="60s"))
            async with betimes.connect(address["a"], advertise=told) as publisher:
                await until_reserved(subscriber)
                cars = await open_ones.enter_async_context(subscriber.subscribe("cars", bandwidth="any"))
                await publisher.publish("cars", "first")
                os.kill(fleet.process_id("b"), signal.SIGKILL)
            await until(lambda: bool(fleet.tend()))
            await until(lambda: [each.state for each in cars.reservations] == ["interrupted", "refused"])
            assert cars.reservations[-1].why.startswith("nobody publishes this")
            assert not cars.reservations[-1].is_definite
            async with betimes.connect(address["a"], advertise=told) as publisher:
                await until(lambda: cars.reservations[-1].state == "accepted")
                assert cars.reservations[-1].bytes_per_s == 20_000
                await publisher.publish("cars", "second")
                async for message in cars:
                    if message.payload == b"second":
                        break

    with Fleet(network) as fleet:
        run(test(fleet))


async def until_reserved(subscriber: Client) -> None:
    """Wait until links are up and the publisher is known."""
    while True:
        try:
            async with subscriber.subscribe("cars", bandwidth="any"):
                return
        except SubscriptionRefusedError:
            await asyncio.sleep(0.2)
