"""How do other people's clients get a broker? One on a free port, in a thread of its own, for one test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvloop
from tests.broker.listening import new_listener
from tests.broker.talking import OPEN_ACCESS, new_hub

from betimes.broker.access.authentication import AccessControl
from betimes.broker.core.hub import Hub
from betimes.broker.net.listener import Endpoint
from betimes.model.buffer_settings import BufferSettings

HOST = "127.0.0.1"
PLAIN = Endpoint(host=HOST, port=0)
WITHIN_S = 30.0  # far more than anything here takes, for slow machines


class Broker:
    """A broker that runs beside the test."""

    def __init__(self, hub: Hub, endpoint: Endpoint) -> None:
        self.hub = hub
        self.port = 0
        self._endpoint = endpoint
        self._up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: uvloop.run(self._serve()), daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._up.wait(WITHIN_S)

    def stop(self) -> None:
        assert self._loop is not None
        assert self._end is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(WITHIN_S)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        listener = new_listener(self.hub)
        await listener.start([self._endpoint])
        self.port = listener.ports[0]
        self._up.set()
        await self._end.wait()
        await listener.stop()


@contextmanager
def running_broker(
    access_control: AccessControl = OPEN_ACCESS,
    endpoint: Endpoint = PLAIN,
    buffer: BufferSettings | None = None,
    **limits: Any,
) -> Iterator[Broker]:
    broker = Broker(new_hub(access_control=access_control, buffer=buffer, **limits), endpoint)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
