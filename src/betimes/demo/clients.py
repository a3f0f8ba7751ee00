"""The clients of the demo: they replay departures over live brokers and count what arrives in time.

Publishers and subscribers are MQTT clients in this one process, so that one clock measures every age.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from urllib.error import URLError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from betimes.client.addresses import Address
from betimes.client.connection import Client, connected
from betimes.client.connection import ClientSubscription as Messages
from betimes.client.core import BUFFER_MAX
from betimes.client.errors import SubscriptionRefusedError, UnreachableError
from betimes.client.request import Mode, SubscribeCall
from betimes.demo.flights import TOPIC, Departure, read_payload
from betimes.demo.scores import DemoTally
from betimes.model.errors import BetimesError
from betimes.model.subscriptions import Subscription
from betimes.terminal.fleet import HOST
from betimes.terminal.progress import Advance

READY_S_MAX = 90.0  # until every airport can reach every subscriber's broker
READY_TOPIC = "ready"
PROBE_EVERY_S = 0.1
AFTERWARDS_S = 0.5  # after the longest bound, for messages in transit
METRICS_S_MAX = 5.0
LOST = "betimes_lost_total"


async def replay(
    departures: Sequence[Departure],
    subscriptions: Sequence[Subscription],
    ports: Mapping[str, int],
    advance: Advance,
) -> DemoTally:
    """Publish each departure when it is due, at the broker named after its airport."""
    tally = DemoTally(subscriptions)
    airports = sorted({each.origin for each in departures})
    try:
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            listening = []
            for each in subscriptions:
                client = await stack.enter_async_context(_client(ports[each.home], each.id))
                messages = await _subscribe(stack, client, each)
                listening.append(group.create_task(_listen(messages, each.id, tally)))
            publishers = {
                airport: await stack.enter_async_context(_client(ports[airport.lower()], airport))
                for airport in airports
            }
            homes = sorted({each.home for each in subscriptions})
            await _until_linked(stack, publishers, {home: ports[home] for home in homes})
            await _publish(departures, publishers, tally, advance)
            await asyncio.sleep(max(each.qos.delay_s_max for each in subscriptions) + AFTERWARDS_S)
            for task in listening:
                task.cancel()
    except (ExceptionGroup, UnreachableError) as error:
        raise first_error(error) from error
    return tally


def first_error(error: Exception) -> Exception:
    """Return the first of several errors; for a lost connection, an error with that message."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, UnreachableError):
        return BetimesError(f"a client lost the connection to its broker ({error})")
    return error


def _client(port: int, name: str) -> AbstractAsyncContextManager[Client]:
    return connected(Address(host=HOST, port=port, client_id=name), timeout=READY_S_MAX)


def subscribe_properties(subscription: Subscription) -> list[tuple[str, str]]:
    """Return the user properties of a SUBSCRIBE, as in docs/mqtt.md."""
    qos = subscription.qos
    return [
        ("filter", subscription.filter.text),
        ("max-delay", f"{qos.delay_s_max * 1000.0:g}ms"),
        ("price", f"{qos.price:g}"),
    ]


async def _subscribe(stack: AsyncExitStack, client: Client, subscription: Subscription) -> Messages:
    try:
        return await stack.enter_async_context(
            _messages(client, f"{TOPIC}/#", subscribe_properties(subscription))
        )
    except SubscriptionRefusedError as error:
        text = f"{subscription.id}: the broker refused the subscription (0x{error.code:02x})"
        raise BetimesError(text) from None


def _messages(client: Client, topic: str, properties: Iterable[tuple[str, str]] = ()) -> Messages:
    """Return a subscription that also yields late messages, because the demo counts them."""
    asked = SubscribeCall(
        topic=topic,
        qos=0,
        delay_s_max=math.inf,
        mode=Mode.NONDURABLE,
        late_too=False,
        after=(),
        properties=tuple(properties),
    )
    return Messages(client, asked, buffer=BUFFER_MAX)


async def _listen(messages: Messages, subscriber: str, tally: DemoTally) -> None:
    async for message in messages:
        now_s = time.monotonic()
        number, sent_s = read_payload(message.payload)
        tally.arrive(subscriber, number, now_s - sent_s)


async def _until_linked(
    stack: AsyncExitStack, publishers: Mapping[str, Client], homes: Mapping[str, int]
) -> None:
    """Wait until a message from every airport reaches every home.

    A home floods its subscriptions in order: an airport that knows this last one knows all.
    """
    end_s = time.monotonic() + READY_S_MAX
    for home, port in homes.items():
        watcher = await stack.enter_async_context(_client(port, f"ready-{home}"))
        heard = await stack.enter_async_context(_messages(watcher, f"{READY_TOPIC}/{home}"))
        missing = set(publishers)
        while missing:
            if time.monotonic() > end_s:
                raise BetimesError(
                    f"no message from {', '.join(sorted(missing))} reached {home}: links are down"
                )
            for airport in missing:
                await publishers[airport].publish(f"{READY_TOPIC}/{home}", airport)
            missing -= await _heard(heard, PROBE_EVERY_S)


async def _heard(messages: Messages, for_s: float) -> set[str]:
    """Return the payloads that arrive within a time."""
    heard: set[str] = set()
    try:
        async with asyncio.timeout(for_s):
            async for message in messages:
                heard.add(message.payload.decode())
    except TimeoutError:
        pass
    return heard


async def _publish(
    departures: Sequence[Departure],
    publishers: Mapping[str, Client],
    tally: DemoTally,
    advance: Advance,
) -> None:
    start_s = time.monotonic()
    for done, departure in enumerate(departures):
        advance(done, len(departures))
        due_s = start_s + departure.at_s
        await asyncio.sleep(max(due_s - time.monotonic(), 0.0))
        sent_s = time.monotonic()
        tally.publish(departure, sent_s - due_s)
        publisher = publishers[departure.origin]
        payload = departure.payload(sent_s)
        await publisher.publish(departure.topic, payload, attributes=departure.attributes)
    advance(len(departures), len(departures))


def dropped_by_reason(metrics_ports: Iterable[int]) -> dict[str, int]:
    """Return the dropped messages by reason, from the brokers' metrics."""
    dropped: Counter[str] = Counter()
    for port in metrics_ports:
        try:
            with urlopen(f"http://{HOST}:{port}/metrics", timeout=METRICS_S_MAX) as page:
                text = page.read().decode()
        except (URLError, OSError) as error:
            raise BetimesError(f"{HOST}:{port}: cannot read the broker's metrics ({error})") from None
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == LOST and sample.value:
                    dropped[sample.labels["reason"]] += int(sample.value)
    return dict(dropped)
