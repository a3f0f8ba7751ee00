"""Which publishers' sockets wait for slow readers: the timers and the queue of waiting lines.

The policy is `delivery/flow.py`; here it meets the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from betimes.broker.delivery.flow import Backpressure, Flow

LOOK_EVERY_S = 0.01


class WaitingLine(Protocol):
    """A socket whose bytes wait."""

    def must_wait(self) -> bool:
        """Tell whether what waits has still to wait."""

    def go_on(self) -> None:
        """Take in what waits."""


class WaitingLines:
    """The lines that wait for slow readers, in the order in which they came."""

    def __init__(self, policy: Backpressure) -> None:
        self._policy = policy
        self._waiting: deque[WaitingLine] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._is_to_go_on = False

    def holds(self, flow: Flow, size: int) -> bool:
        """Tell whether what a client sent has to wait."""
        return self._policy.must_wait(flow, size)

    def add(self, line: WaitingLine) -> None:
        """Let a line wait for its turn."""
        self._waiting.append(line)
        if self._timer is None:
            self._look_later()

    def forget(self, line: WaitingLine) -> None:
        """Let a line wait no more."""
        self._waiting.remove(line)

    def go_on(self) -> None:
        """Let the next line in, soon, if it has to wait no more."""
        if self._waiting and not self._is_to_go_on:
            self._is_to_go_on = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._is_to_go_on = False
        if self._waiting and not self._waiting[0].must_wait():
            self._let_in()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look_at_readers)

    def _look_at_readers(self) -> None:
        """Give up readers without progress; let the next line in, if any reader made some."""
        self._timer = None
        if not self._waiting:
            self._policy.watch_none()
            return
        if self._policy.look() or not self._waiting[0].must_wait():
            self._let_in()
        self._look_later()

    def _let_in(self) -> None:
        self._waiting.popleft().go_on()
