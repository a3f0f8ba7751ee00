"""How does a live broker come to answer by a new model? It is worked out in a thread while all goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from betimes.broker.admission.admission import Promises, is_promised, worked_out
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.subscriptions import Grant
from betimes.model.errors import BetimesError

log = logging.getLogger(__name__)


async def learn_models(hub: Hub, promises: Promises, now_s: Callable[[], float]) -> None:
    """Work out the newest model whenever one has come, for ever."""
    came = asyncio.Event()
    promises.wake = came.set
    while True:
        await came.wait()
        came.clear()
        payload, promises.to_learn = promises.to_learn, None
        if payload is None:
            continue
        try:
            model = await asyncio.to_thread(worked_out, payload)
        except BetimesError as error:
            log.error("a signed model is of no use: %s", error)
            continue
        if promises.learn(model, promised_grants(hub), now_s()):
            log.info("promises are by a new model, with %d subscriptions", len(model.admission))
        else:
            log.warning("a model that is no newer than the last is ignored")


def promised_grants(hub: Hub) -> Iterator[Grant]:
    """Yield the subscriptions that ask for an on-time share."""
    for session in hub.sessions.values():
        yield from filter(is_promised, session.grants.values())
