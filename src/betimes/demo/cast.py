"""Three more clients of the demo: one resumes elsewhere, one has a guarantee, one is refused.

All run in this process, so that one clock measures every age. Their traffic is small beside the departures.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise

from betimes.client.connection import Client, ClientSubscription, connect
from betimes.client.errors import SubscriptionRefusedError
from betimes.demo.flights import TOPIC
from betimes.model.errors import BetimesError
from betimes.terminal.fleet import HOST

NOTICES, NOTICES_AT, NOTICE_EVERY_S = "notices/gates", "jfk", 0.2
ALERTS, ALERTS_AT, ALERT_EVERY_S = "alerts/runway", "lga", 0.25
PADDING = "." * 200
FIRST_HOME, SECOND_HOME = "travellers", "airlines"
AWAY_FROM, AWAY_UNTIL = 0.3, 0.55  # as shares of the replay
GUARANTEE_KB_PER_S, GUARANTEED_WITHIN_S = 4.0, 0.5
ASKED_SHARE, ASKED_WITHIN = 0.99, "300ms"
ASKED_AT = 0.5  # as a share of the replay
SETTLED_S = 1.0  # until all brokers know a new client
READY_S_MAX, PROBE_EVERY_S, PROBE = 90.0, 0.2, -1
NOT_DEFINITE = "not definite"  # the broker's text for a refusal that may change
AFTERWARDS_S = 3.0  # for messages that are still in transit


@dataclass(frozen=True, slots=True, kw_only=True)
class Traveller:
    """The result of the subscriber that disconnected and resumed at another broker."""

    published: int
    got: int
    replayed: int  # published while the subscriber was away
    twice: int
    out_of_order: int
    gaps: int  # messages that the broker reported as lost
    away_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteedPassenger:
    """The result of the subscriber with reserved bandwidth."""

    answer: str
    published: int
    got: int
    on_time: int
    within_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """The broker's answer to the subscriber that asks for too high an on-time share."""

    asked_share: float
    refused: bool
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CastFacts:
    """The results of all three clients."""

    traveller: Traveller
    guaranteed: GuaranteedPassenger
    asked: RefusedRequest


async def perform(ports: Mapping[str, int], seconds: float) -> CastFacts:
    """Run all three clients for a time."""
    async with asyncio.TaskGroup() as group:
        traveller = group.create_task(_travel(ports, seconds))
        guaranteed = group.create_task(_be_guaranteed(ports, seconds))
        asked = group.create_task(_ask_too_much(ports, seconds))
    return CastFacts(traveller=traveller.result(), guaranteed=guaranteed.result(), asked=asked.result())


def _url(ports: Mapping[str, int], broker: str) -> str:
    return f"mqtt://{HOST}:{ports[broker]}"


async def _travel(ports: Mapping[str, int], seconds: float) -> Traveller:
    got: list[tuple[int, float]] = []  # number, and when it was published
    async with connect(_url(ports, NOTICES_AT)) as publisher:
        async with (
            connect(_url(ports, FIRST_HOME)) as client,
            client.subscribe(NOTICES, mode="semi-durable", price=5) as notices,
        ):
            reading = asyncio.create_task(_read(notices, got))
            await _until_heard(publisher, NOTICES, got)
            start_s = time.monotonic()
            publishing = asyncio.create_task(_publish(publisher, NOTICES, seconds, NOTICE_EVERY_S))
            await asyncio.sleep(AWAY_FROM * seconds)
            await _stop(reading)
            tokens = notices.tokens()
        left_s = time.monotonic()
        await asyncio.sleep(max(start_s + AWAY_UNTIL * seconds - left_s, 0.0))
        async with (
            connect(_url(ports, SECOND_HOME)) as client,
            client.subscribe(NOTICES, mode="semi-durable", after=tokens, price=5) as notices,
        ):
            back_s = time.monotonic()
            reading = asyncio.create_task(_read(notices, got))
            published = await publishing
            await asyncio.sleep(AFTERWARDS_S)
            await _stop(reading)
            gaps = sum(gap.at_most for gap in notices.gaps)
    numbers = [number for number, _ in got if number != PROBE]
    return Traveller(
        published=published,
        got=len(set(numbers)),
        replayed=sum(left_s <= sent_s < back_s for _, sent_s in got),
        twice=len(numbers) - len(set(numbers)),
        out_of_order=sum(one > other for one, other in pairwise(numbers)),
        gaps=gaps,
        away_s=back_s - left_s,
    )


async def _be_guaranteed(ports: Mapping[str, int], seconds: float) -> GuaranteedPassenger:
    got: list[tuple[int, float]] = []
    ages_s: list[float] = []
    rate = f"{GUARANTEE_KB_PER_S:g}KB/s"
    async with connect(_url(ports, ALERTS_AT), advertise={ALERTS: rate}) as publisher:
        await asyncio.sleep(SETTLED_S)
        async with connect(_url(ports, SECOND_HOME)) as client, AsyncExitStack() as stack:
            alerts = await _guaranteed(client, stack, rate)
            reading = asyncio.create_task(_read(alerts, got, ages_s))
            await _until_heard(publisher, ALERTS, got)
            published = await _publish(publisher, ALERTS, seconds - SETTLED_S, ALERT_EVERY_S)
            await asyncio.sleep(AFTERWARDS_S)
            await _stop(reading)
            answer = alerts.answer
    return GuaranteedPassenger(
        answer=answer,
        published=published,
        got=sum(number != PROBE for number, _ in got),
        on_time=sum(age_s <= GUARANTEED_WITHIN_S for age_s in ages_s),
        within_s=GUARANTEED_WITHIN_S,
    )


async def _ask_too_much(ports: Mapping[str, int], seconds: float) -> RefusedRequest:
    await asyncio.sleep(ASKED_AT * seconds)
    async with connect(_url(ports, FIRST_HOME)) as client:
        wanted = client.subscribe(f"{TOPIC}/#", max_delay=ASKED_WITHIN, reliability=ASKED_SHARE)
        try:
            async with wanted:
                return RefusedRequest(asked_share=ASKED_SHARE, refused=False, answer=wanted.answer)
        except SubscriptionRefusedError as error:
            return RefusedRequest(asked_share=ASKED_SHARE, refused=True, answer=error.reason)


async def _guaranteed(client: Client, stack: AsyncExitStack, rate: str) -> ClientSubscription:
    """Subscribe with a guarantee; ask again as long as the refusal is not definite."""
    end_s = time.monotonic() + READY_S_MAX
    while True:
        alerts = client.subscribe(ALERTS, bandwidth=rate, latency=GUARANTEED_WITHIN_S)
        try:
            return await stack.enter_async_context(alerts)
        except SubscriptionRefusedError as error:
            if NOT_DEFINITE not in error.reason or time.monotonic() > end_s:
                raise
        await asyncio.sleep(PROBE_EVERY_S)


async def _until_heard(publisher: Client, topic: str, got: list[tuple[int, float]]) -> None:
    """Publish probes until one arrives: the links of the brokers have to come up first."""
    end_s = time.monotonic() + READY_S_MAX
    while not got:
        if time.monotonic() > end_s:
            raise BetimesError(f"no message to {topic} arrived in {READY_S_MAX:g} s: links are down")
        await publisher.publish(topic, json.dumps({"number": PROBE, "sent_s": time.monotonic()}), qos=1)
        await asyncio.sleep(PROBE_EVERY_S)


async def _publish(client: Client, topic: str, seconds: float, every_s: float) -> int:
    """Publish messages at regular intervals; return their number."""
    start_s, count = time.monotonic(), 0
    while (due_s := start_s + count * every_s) < start_s + seconds:
        await asyncio.sleep(max(due_s - time.monotonic(), 0.0))
        told = {"number": count, "sent_s": time.monotonic(), "text": PADDING}
        await client.publish(topic, json.dumps(told), qos=1)
        count += 1
    return count


async def _read(
    messages: ClientSubscription, got: list[tuple[int, float]], ages_s: list[float] | None = None
) -> None:
    async for message in messages:
        told = json.loads(message.payload)
        got.append((int(told["number"]), float(told["sent_s"])))
        if ages_s is not None and got[-1][0] != PROBE:
            ages_s.append(time.monotonic() - float(told["sent_s"]))


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
