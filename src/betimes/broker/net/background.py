"""What runs beside the broker: working out models, and writing telemetry. Both work in threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator

from betimes.broker.admission.admission import AdmissionControl, is_promised, worked_out
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.observe.telemetry_log import LOOK_EVERY_S, TelemetryLog
from betimes.model.errors import BetimesError

log = logging.getLogger(__name__)


async def load_models(
    admission: AdmissionControl,
    sessions: Callable[[], Iterable[Session]],
    came: asyncio.Event,
    now_s: Callable[[], float],
) -> None:
    """Work out the newest model whenever one has come, for ever."""
    while True:
        await came.wait()
        came.clear()
        payload = admission.take_model()
        if payload is None:
            continue
        try:
            model = await asyncio.to_thread(worked_out, payload)
        except BetimesError as error:
            log.error("a signed model is of no use: %s", error)
            continue
        if admission.learn(model, promised_subscriptions(sessions()), now_s()):
            log.info("admission is by a new model, with %d subscriptions", len(model.admission))
        else:
            log.warning("a model that is no newer than the last is ignored")


async def keep_telemetry(logbook: TelemetryLog, hub: Hub) -> None:
    """Write parts of a broker's telemetry as they fall due, and publish it to its clients, for ever."""
    topics = logbook.publish_at(hub)
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        write = logbook.tick(hub, topics)
        if write is not None:
            await asyncio.to_thread(write)


def promised_subscriptions(sessions: Iterable[Session]) -> Iterator[BrokerSubscription]:
    """Yield the subscriptions that ask for an on-time share."""
    for session in sessions:
        yield from filter(is_promised, session.subscriptions.values())
