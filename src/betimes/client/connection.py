"""`betimes.connect`: the client for programs with an event loop.

What it does is in `client/core.py`, how bytes travel in `client/asyncio_driver.py`; this runs one on the
other. `betimes.connect_sync` (`client/blocking/client.py`) is the same for programs without an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import TracebackType

from betimes.client.addresses import Address
from betimes.client.asyncio_driver import AsyncioSocket
from betimes.client.core import ClientCore, Life
from betimes.client.effects import Answer, AwaitAnswer, AwaitWritten, Dial, Effect, Flow, HangUp
from betimes.client.messages import Message
from betimes.client.request import Duration, SubscribeCall
from betimes.client.settings import ClientSettings, read_addresses, read_settings
from betimes.client.subscription_buffer import SubscriptionBuffer
from betimes.model.errors import BetimesError
from betimes.model.events import Value
from betimes.model.user_properties import SIGNATURE


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
        await self._client.run(self._client.opening_subscription(self))
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        self.clear()
        self.wake()
        await self._client.run(self._client.closing_subscription(self))

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield each message when it comes; end when the client or the subscription does."""
        async with nullcontext() if self._is_open else self:
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


class Client(ClientCore[ClientSubscription]):
    """A connection to a broker, as long as `connect` holds it open."""

    def __init__(self, settings: ClientSettings) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._reconnect_task: asyncio.Task[None] | None = None
        super().__init__(settings, now_s=loop.time, new_waiter=loop.create_future)
        self._socket = AsyncioSocket(self._connection)

    async def publish(
        self,
        topic: str,
        payload: bytes | str = b"",
        *,
        attributes: Mapping[str, Value] | None = None,
        deadline: Duration | None = None,
        importance: int | None = None,
        qos: int = 0,
        retain: bool = False,
    ) -> None:
        """Publish; with QoS 1 or 2 wait until the broker has taken it."""
        flow = self._publishing(topic, payload, attributes, deadline, importance, qos, retain)
        await self.run(flow)

    async def publish_signed(self, topic: str, payload: bytes, signature: str) -> None:
        """Publish something of Betimes's own, which brokers believe because of its signature."""
        await self.run(self._sending(topic, payload, [(SIGNATURE, signature)], qos=1, retain=True))

    # --- for connect

    async def open(self) -> None:
        """Connect, to the first broker that can be reached."""
        await self.run(self._opening())

    async def close(self) -> None:
        """Disconnect."""
        if self._reconnect_task is not None:
            self._reconnect_task.cancel()
            await asyncio.gather(self._reconnect_task, return_exceptions=True)
        await self.run(self._closing())

    # --- flows

    def _new_subscription(self, asked: SubscribeCall, buffer: int) -> ClientSubscription:
        return ClientSubscription(self, asked, buffer=buffer)

    def _begin_reconnecting(self) -> None:
        self._reconnect_task = self._loop.create_task(self.run(self._reconnecting()))
        self._reconnect_task.add_done_callback(self._reconnect_task_ended)

    def _reconnect_task_ended(self, task: asyncio.Task[None]) -> None:
        """Tell the program of a bug: a task that dies must not leave it waiting."""
        bug = None if task.cancelled() else task.exception()
        if bug is not None and self.life is Life.RECONNECTING:
            self._give_up(BetimesError(f"reconnecting has died: {bug!r}"))
            self._loop.call_exception_handler({"message": "reconnecting has died", "exception": bug})

    async def run(self, flow: Flow) -> None:
        """Perform the effects of a flow, one after the other."""
        answer: Answer | None = None
        error: BetimesError | None = None
        while True:
            try:
                effect = flow.send(answer) if error is None else flow.throw(error)
            except StopIteration:
                return
            answer = error = None
            try:
                answer = await self._perform(effect)
            except BetimesError as raised:
                error = raised
            except BaseException:  # the task is cancelled: whatever the flow has begun, it takes back
                flow.close()
                raise

    async def _perform(self, effect: Effect) -> Answer | None:
        if isinstance(effect, AwaitWritten):
            await self._socket.written()
        elif isinstance(effect, AwaitAnswer):
            return await self._socket.answer(effect.waiter)
        elif isinstance(effect, Dial):
            self._socket = AsyncioSocket(effect.connection)
            await self._socket.open(effect.place)
        elif isinstance(effect, HangUp):
            await self._socket.close()
        else:
            await asyncio.sleep(effect.pause_s)
        return None


@asynccontextmanager
async def connect(
    address: str | Sequence[str],
    *,
    client_id: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ca: str | Path | None = None,
    timeout: Duration = "10s",
    reconnect: Duration = "0s",
    session: Duration = "0s",
    advertise: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """Connect to a broker at mqtt://, mqtts://, ws:// or wss://user:password@host:port, or one of several.

    What is given by name wins over the address. `ca` is a file of certificates to trust in place of the
    system's. `timeout` bounds the wait for each answer of the broker. A connection that breaks is opened
    again, at the next broker of the list, for as long as `reconnect` says; for as long as `session` says the
    brokers keep what durable subscriptions miss meanwhile. `advertise` says what will be published and how
    much bandwidth it takes, by topic, for subscribers that ask for a guarantee: {"traffic/a4": "15KB/s"}.
    """
    async with connected(
        *read_addresses(address, client_id=client_id, user=user, password=password),
        ca=ca,
        timeout=timeout,
        reconnect=reconnect,
        session=session,
        advertise=advertise,
    ) as client:
        yield client


@asynccontextmanager
async def connected(
    *addresses: Address,
    ca: str | Path | None = None,
    timeout: Duration = "10s",
    reconnect: Duration = "0s",
    session: Duration = "0s",
    advertise: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """Connect to one of some brokers whose addresses were read before."""
    client = Client(
        read_settings(
            addresses, ca=ca, timeout=timeout, reconnect=reconnect, session=session, advertised=advertise
        )
    )
    await client.open()
    try:
        yield client
    finally:
        await client.close()
