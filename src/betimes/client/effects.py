"""What a client's policy asks of its driver. The policy is a generator: it yields effects, the driver acts.

A `Flow` is written once for all drivers: `answer = yield AwaitAnswer(waiter)`. The driver performs each
effect, waits as it must (`await`, or by blocking the thread), and sends back the result, or throws the error.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from betimes.client.broker_connection import BrokerConnection
    from betimes.client.settings import Place


class Answer(NamedTuple):
    """What an acknowledgement says."""

    code: int
    reason: str = ""
    is_definite: bool = True


class Waiter(Protocol):
    """Where an answer is put once it comes; None stands for a connection that was lost before.

    `asyncio.Future` is one.
    """

    def done(self) -> bool:
        """Tell whether it is there, or is not waited for any more."""

    def set_result(self, answer: Answer | None, /) -> None:
        """Put it there."""


class Dial(NamedTuple):
    """Open a transport to a place for a connection, and wait until the broker has let it in."""

    connection: BrokerConnection
    place: Place


class HangUp(NamedTuple):
    """Send what is left to send, and close the transport of the connection."""


class AwaitAnswer(NamedTuple):
    """Send, and wait for an answer within the time limit."""

    waiter: Waiter


class AwaitWritten(NamedTuple):
    """Send, and wait until the operating system has taken all of it, within the time limit."""


class Wait(NamedTuple):
    """Wait for so long."""

    pause_s: float


Effect = Dial | HangUp | AwaitAnswer | AwaitWritten | Wait
Flow = Generator[Effect, Answer | None, None]
