"""`betimes.connect_sync`: the client for programs without an event loop.

The same calls as those of `betimes.connect`, without `await`; what they do is in `client/core.py`. A thread
of its own reads the socket: without it no PINGREQ and no acknowledgement would go out while the program does
something else. All threads of a program may share a client (docs/client.md).
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType

from betimes.client.blocking.connection import open_socket
from betimes.client.blocking.socket_exchange import SocketExchange
from betimes.client.core import ClientCore, Life
from betimes.client.effects import Answer, AwaitAnswer, AwaitWritten, Dial, Effect, Flow, HangUp, Waiter
from betimes.client.messages import Message
from betimes.client.request import Duration, SubscribeCall, duration_text
from betimes.client.settings import ClientSettings, read_addresses, read_settings
from betimes.client.subscription_buffer import SubscriptionBuffer
from betimes.language.quantities import read_duration_s
from betimes.model.errors import BetimesError
from betimes.model.events import Value

TURN_S_MAX = 60.0
JOIN_S_MAX = 1.0  # for the thread to end; it may be dialling, and ends when that is over


class _Closing(Exception):  # noqa: N818 -- no error: the thread is to end
    """The client is being closed while its thread waits."""


class SyncSubscription(SubscriptionBuffer):
    """The messages of one subscription.

    `for` subscribes, yields, and unsubscribes when it is left. `with` subscribes at once, for programs that
    must know when the subscription holds.
    """

    def __init__(self, client: SyncClient, asked: SubscribeCall, *, buffer: int) -> None:
        super().__init__(asked, buffer=buffer)
        self._client = client
        self._arrived = threading.Condition(client.lock)
        self._is_open = self._was_open = False

    def __enter__(self) -> SyncSubscription:
        self._client.run(self._client.opening_subscription(self))
        self._is_open = self._was_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._client.lock:
            self._is_open = False
            self.clear()
            self.wake()
        self._client.run(self._client.closing_subscription(self))

    def __iter__(self) -> Iterator[Message]:
        """Yield each message when it comes; end when the client or the subscription does."""
        with nullcontext() if self._is_open else self:
            while (message := self._next(math.inf)) is not None:
                yield message

    def tokens(self) -> list[str]:
        """Return what to resume after, later and anywhere: `after` of another subscription."""
        with self._client.lock:
            return super().tokens()

    def wait(self, timeout: Duration) -> Message | None:
        """Return the next message; None where none comes in time, or the subscription has ended."""
        if not self._was_open:
            hint = "with client.subscribe(…) as subscription: subscription.wait(…)"
            raise BetimesError(f"this subscription is not open\nhint: {hint}")
        return self._next(self._client.now_s() + read_duration_s(duration_text("timeout", timeout)))

    def wake(self) -> None:
        """Have the threads that wait for a message look again."""
        with self._client.lock:
            self._arrived.notify_all()

    def _next(self, end_s: float) -> Message | None:
        """Wait for a message that is not too old; None at the end."""
        with self._client.lock:
            while self._is_open:
                now_s = self._client.now_s()
                message = self.next_waiting(now_s)
                if message is not None:
                    return message
                if self._client.is_closed() or now_s >= end_s:
                    return None
                self._arrived.wait(None if end_s == math.inf else end_s - now_s)
            return None


class SyncClient(ClientCore[SyncSubscription]):
    """A connection to a broker, as long as `connect_sync` holds it open. All of it may be used by threads."""

    def __init__(self, settings: ClientSettings) -> None:
        self.lock = threading.RLock()  # guards all of the client but the waiting
        self._process = os.getpid()
        self._exchange: SocketExchange | None = None
        self._must_end = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="betimes-client", daemon=True)
        self._turning = threading.get_ident()  # the thread that reads: until it is started, the program's
        super().__init__(settings, now_s=time.monotonic, new_waiter=Future[Answer | None])

    def publish(
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
        self.run(self._publishing(topic, payload, attributes, deadline, importance, qos, retain))

    @property
    def dropped(self) -> int:
        """Return how many messages came faster than they were taken, and were dropped for newer ones."""
        with self.lock:
            return super().dropped

    @property
    def late(self) -> int:
        """Return how many messages waited here until they were older than their subscription allows."""
        with self.lock:
            return super().late

    # --- for connect_sync

    def open(self) -> None:
        """Connect, to the first broker that can be reached, and have a thread read from then on."""
        self.run(self._opening())
        self._thread.start()

    def close(self) -> None:
        """Disconnect. In a forked child do nothing: the connection is its parent's."""
        if os.getpid() == self._process:
            self.run(self._closing())
            self._thread.join(JOIN_S_MAX)

    # --- flows

    def _new_subscription(self, asked: SubscribeCall, buffer: int) -> SyncSubscription:
        return SyncSubscription(self, asked, buffer=buffer)

    def _begin_reconnecting(self) -> None:
        """Do nothing: the thread that reads sees that the connection has ended, and goes on from there."""

    def run(self, flow: Flow) -> None:
        """Perform the effects of a flow, one after the other."""
        if os.getpid() != self._process:
            raise BetimesError("this client belongs to the parent process\nhint: connect in the child too")
        answer: Answer | None = None
        error: BetimesError | None = None
        while True:
            with self.lock:
                if self.life is Life.CLOSED and self._is_turning():
                    flow.close()
                    raise _Closing
                try:
                    effect = flow.send(answer) if error is None else flow.throw(error)
                except StopIteration:
                    return
                if self._exchange is not None:
                    self._exchange.flush()
            answer = error = None
            try:
                answer = self._perform(effect)
            except BetimesError as raised:
                error = raised
            except BaseException:  # Ctrl-C: whatever the flow has begun, it takes back
                with self.lock:
                    flow.close()
                raise

    def _perform(self, effect: Effect) -> Answer | None:
        if isinstance(effect, AwaitWritten):
            self._wait_until_written()
        elif isinstance(effect, AwaitAnswer):
            return self._answer(effect.waiter)
        elif isinstance(effect, Dial):
            self._dial(effect)
        elif isinstance(effect, HangUp):
            self._hang_up()
        elif self._must_end.wait(effect.pause_s):
            raise _Closing
        return None

    def _answer(self, waiter: Waiter) -> Answer:
        connection = self._connection
        if not self._has_come(waiter):
            raise connection.silent()
        assert isinstance(waiter, Future), "this is how this client waits"
        answer: Answer | None = waiter.result()
        if answer is None:
            raise connection.lost()
        return answer

    def _has_come(self, waiter: Waiter) -> bool:
        """Wait for an answer, and tell whether it came in time."""
        assert isinstance(waiter, Future), "this is how this client waits"

        def wait(timeout_s: float) -> bool:
            try:
                waiter.result(timeout_s)
            except TimeoutError:
                return False
            return True

        return self._is_within(waiter.done, wait)

    def _wait_until_written(self) -> None:
        exchange, connection = self._exchange, self._connection
        if exchange is None or exchange.written.is_set():
            return
        if not self._is_within(exchange.written.is_set, exchange.written.wait):
            raise connection.silent()
        if connection.is_over():
            raise connection.lost()

    def _is_within(self, is_done: Callable[[], bool], wait: Callable[[float], bool]) -> bool:
        """Wait for something, and tell whether it came in time; the thread that reads goes on reading."""
        timeout_s = self.settings.timeout_s
        if not self._is_turning():
            return wait(timeout_s)
        end_s = time.monotonic() + timeout_s
        while not is_done():
            left_s = end_s - time.monotonic()
            if self._must_end.is_set():
                raise _Closing
            if left_s <= 0.0 or self._exchange is None:
                return False
            self._exchange.turn(left_s)
        return True

    def _dial(self, dial: Dial) -> None:
        connection = dial.connection
        try:
            found = open_socket(dial.place, connection.timeout_s)
        except (OSError, ValueError) as error:
            raise connection.unreachable(error) from None
        with self.lock:
            if self.life is Life.CLOSED:
                found.close()
                raise _Closing
            self._exchange = SocketExchange(found, connection, self.lock)
            connection.start(time.monotonic())
            self._exchange.flush()
        try:
            self._has_come(connection.opened)
            connection.check_open()
        except BaseException:
            with self.lock:
                self._exchange.close()
            raise

    def _hang_up(self) -> None:
        """Have the socket closed, once what is left to send is sent or the time limit is over."""
        exchange = self._exchange
        if exchange is None:
            return
        if self._is_turning():
            with self.lock:
                exchange.close()
        else:
            exchange.written.wait(self.settings.timeout_s)
            self._must_end.set()
            exchange.wake()

    def _is_turning(self) -> bool:
        return threading.get_ident() == self._turning

    # --- the thread that reads

    def _serve(self) -> None:
        """Exchange bytes until the client is closed; open the next connection where one is lost."""
        self._turning = threading.get_ident()
        try:
            while not self._must_end.is_set():
                if self.life is Life.RECONNECTING:
                    self.run(self._reconnecting())
                elif self.life is Life.OPEN and self._exchange is not None:
                    self._exchange.turn(TURN_S_MAX)
                else:
                    break
        except _Closing:
            pass
        except BaseException as bug:
            with self.lock:  # a thread that dies must not leave the program waiting
                if self.life is not Life.CLOSED:
                    self._give_up(BetimesError(f"the client's thread has died: {bug!r}"))
                self._connection.broke()
            raise
        finally:
            self._turning = 0
            with self.lock:
                if self._exchange is not None:
                    self._exchange.close()


@contextmanager
def connect_sync(
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
) -> Iterator[SyncClient]:
    """Connect to a broker at mqtt://, mqtts://, ws:// or wss://user:password@host:port, or one of several.

    The options are those of `betimes.connect`. A thread keeps the connection alive while the program does
    something else. The client may be shared by threads.
    """
    addresses = read_addresses(address, client_id=client_id, user=user, password=password)
    client = SyncClient(
        read_settings(
            addresses, ca=ca, timeout=timeout, reconnect=reconnect, session=session, advertised=advertise
        )
    )
    client.open()
    try:
        yield client
    finally:
        client.close()
