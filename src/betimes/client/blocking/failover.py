"""A connection to one of some brokers, without an event loop: where one is lost, the next is dialled."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from betimes.client.addresses import Address
from betimes.client.blocking.connection import DirectConnection
from betimes.client.errors import UnreachableError
from betimes.client.resubscribing import BackOff

PAUSE_S_MAX = 2.0  # between two attempts to connect

T = TypeVar("T")


class FailoverConnection:
    """A connection that is opened when it is needed, and again, elsewhere, for as long as patience lasts."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        ca: str | Path | None = None,
        timeout_s: float = 10.0,
        patience_s: float = 0.0,
    ) -> None:
        self._addresses = addresses
        self._ca = ca
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._place = 0
        self._line: DirectConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> Address:
        """Return which broker is talked to."""
        return self._addresses[self._place]

    def close(self) -> None:
        """Hang up."""
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def do(self, action: Callable[[DirectConnection], T]) -> T:
        """Do something on the connection; all of it again on the next one where that is lost."""
        back_off = BackOff(time.monotonic() + self._patience_s, PAUSE_S_MAX)
        while True:
            was_open = self._line is not None
            try:
                if self._line is None:
                    self._line = DirectConnection(self.address, ca=self._ca, timeout_s=self._timeout_s)
                return action(self._line)
            except UnreachableError:
                self.close()
                if was_open:
                    continue  # it may have been cut while nothing was asked
                pause_s = back_off.pause_s(time.monotonic())
                if pause_s is None:
                    raise
                self._place = (self._place + 1) % len(self._addresses)
            time.sleep(pause_s)
