"""A subscription of the asyncio client: an asynchronous iterator over its messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING

from betimes.client.messages import Message
from betimes.client.request import SubscribeCall
from betimes.client.subscription_buffer import SubscriptionBuffer

if TYPE_CHECKING:
    from betimes.client.connection import Client


class ClientSubscription(SubscriptionBuffer):
    """The messages of one subscription.

    `async for` subscribes, yields, and unsubscribes when it is left. `async with` subscribes at once, for
    programs that must know when the subscription holds.
    """

    def __init__(self, client: Client, asked: SubscribeCall, *, buffer: int) -> None:
        super().__init__(asked, buffer=buffer)
        self._client = client
        self._arrived = asyncio.Event()
        self._is_open = False

    async def __aenter__(self) -> ClientSubscription:
        await self._client.open_subscription(self)
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        self.clear()
        self.wake()
        await self._client.close_subscription(self)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield each message when it comes; end when the client or the subscription does."""
        if self._is_open:
            while (message := await self._next()) is not None:
                yield message
        else:
            async with self:
                while (message := await self._next()) is not None:
                    yield message

    def wake(self) -> None:
        """Have the task that waits for a message look again."""
        self._arrived.set()

    async def _next(self) -> Message | None:
        """Wait for a message that is not too old; None at the end."""
        while self._is_open:
            message = self.next_waiting(self._client.now_s())
            if message is not None:
                return message
            if self._client.is_closed():
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return None
