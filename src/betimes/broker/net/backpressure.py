"""Who waits when somebody publishes faster than somebody else reads?

Queues are bounded, so what a reader cannot take is lost in the end. Often it could, a moment later: a
hundred publishers may send in one turn of the loop what takes a reader ten. So what a client sends in full
flight is not looked at while those whom it filled up last time take no more, one after the other as they
do. Nobody waits for long: while readers take something, one is let in now and then whatever is; and a reader
that takes nothing for a while, or whose queue overflowed, is not waited for until it has caught up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from betimes.broker.core.hub import Hub
    from betimes.broker.delivery.connection import Connection
    from betimes.broker.delivery.session import Session
    from betimes.broker.net.socket_line import Line

FULL_FLIGHT_BYTES = 32 * 1024  # who sends so much at once publishes as fast as it can
CROWDED_SHARE = 0.125  # of a queue: when it is so full, also those wait who did not fill it
LOOK_EVERY_S = 0.01
# Looks at a reader that takes nothing, until it is given up. They are counted, not timed: a broker that has
# been kept from looking does not know whether anybody takes anything.
LOOKS_MAX = 50


class Crowd:
    """The lines whose clients wait, and those they wait for."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._held: deque[Line] = deque()
        self._watched: dict[Session, _Watched] = {}
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
            self._look_later()

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

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look_at_readers)

    def _look_at_readers(self) -> None:
        """Give up who takes nothing; let the next line in, if anybody took something."""
        self._timer = None
        if not self._held:
            self._watched.clear()
            return
        self._watched = {each: known for each, known in self._watched.items() if each.connection is not None}
        progress = [known.look(each) for each, known in self._watched.items()]
        if any(progress) or not self._held[0].is_held_up():
            self._let_in()
        self._look_later()

    def _let_in(self) -> None:
        self._held.popleft().go_on()

    def _is_waited_for(self, session: Session) -> bool:
        connection = session.connection
        if connection is None or not connection.blocked or session.is_given_up:
            self._watched.pop(session, None)
            return False
        if session not in self._watched:
            self._watched[session] = _Watched(connection.drains)
        return True


class _Watched:
    """A reader that is waited for."""

    __slots__ = ("_drains", "_looks")

    def __init__(self, drains: int) -> None:
        self._drains = drains
        self._looks = 0  # since it took more

    def look(self, session: Session) -> bool:
        """Tell whether it has taken more since the last look; give it up after so many without that."""
        assert session.connection is not None, "who has gone is not waited for"
        drains = session.connection.drains
        if drains == self._drains:
            self._looks += 1
            session.is_given_up |= self._looks >= LOOKS_MAX
            return False
        self._drains, self._looks = drains, 0
        return True
