"""Who waits when somebody publishes faster than somebody else reads?

Queues are bounded, so what a reader cannot take is lost in the end. Often it could, a moment later: a
hundred publishers may send in one turn of the loop what takes a reader ten. So what a client sends in full
flight is not looked at while those whom it filled up last time take no more, one after the other as they
do. Nobody waits for long: now and then one is let in whatever is, and a reader that takes nothing for a
while, or whose queue overflowed, is not waited for until it has caught up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from betimes.server.connection import Connection
    from betimes.server.hub import Hub
    from betimes.server.lines import Line
    from betimes.server.session import Session

FULL_FLIGHT_BYTES = 32 * 1024  # who sends so much at once publishes as fast as it can
CROWDED_SHARE = 0.125  # of a queue: when it is so full, also those wait who did not fill it
LET_IN_EVERY_S = 0.01  # at the latest
PATIENCE_S = 0.25  # with a reader that takes nothing


class Crowd:
    """The lines whose clients wait, and those they wait for."""

    def __init__(self, hub: Hub, now_s: Callable[[], float]) -> None:
        self._hub = hub
        self._now_s = now_s
        self._held: deque[Line] = deque()
        self._watched: dict[Session, tuple[int, float]] = {}  # how often it took more, and since when not
        self._timer: asyncio.TimerHandle | None = None
        self._is_to_go_on = False

    def holds(self, connection: Connection, size: int) -> bool:
        """Tell whether what a client sent has to wait."""
        if size < FULL_FLIGHT_BYTES or connection.session is None:
            return False
        if any(self._is_waited_for(each) for each in connection.laggards):
            return True
        laggards = self._hub.laggards
        for session in [each for each in laggards if not self._is_waited_for(each)]:
            laggards.remove(session)
        return any(each.fullness >= CROWDED_SHARE for each in laggards)

    def add(self, line: Line) -> None:
        """Let a line wait for its turn."""
        self._hub.traffic.pauses += 1
        self._held.append(line)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LET_IN_EVERY_S, self._let_in)

    def forget(self, line: Line) -> None:
        """Wait no more with a line."""
        self._held.remove(line)

    def go_on(self) -> None:
        """Let the next line in, soon, if nobody lags behind any more on whom it waits."""
        if self._held and not self._is_to_go_on:
            self._is_to_go_on = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._is_to_go_on = False
        if self._held and not self._held[0].is_held_up():
            self._let_in()

    def _let_in(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._held:
            return
        line = self._held.popleft()
        if self._held:
            self._timer = asyncio.get_running_loop().call_later(LET_IN_EVERY_S, self._let_in)
        line.go_on()

    def _is_waited_for(self, session: Session) -> bool:
        connection = session.connection
        if connection is None or not connection.blocked or session.is_given_up:
            self._watched.pop(session, None)
            return False
        now_s = self._now_s()
        drains, since_s = self._watched.get(session, (-1, now_s))
        if drains != connection.drains:
            self._watched[session] = (connection.drains, now_s)
        elif now_s - since_s > PATIENCE_S:
            session.is_given_up = True
        return not session.is_given_up
