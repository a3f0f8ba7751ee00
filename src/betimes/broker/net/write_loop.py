"""When the broker writes: after every turn of the loop, and only what is committed.

With a store, what happened in one turn of the loop is committed once, at its end, and only then written to
the sockets: no client hears of what could still be lost. If it cannot be committed, all connections are cut
and the broker ends: its state is no longer what the file says, and only a new start makes them one again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable

from betimes.broker.core.connection import TURN_UNITS, Connection
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.flow import Pause
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.durability.store import Store
from betimes.broker.net.backpressure import WaitingLines
from betimes.broker.net.socket_line import TRANSPORT_BYTES_ENDURED, SocketLine
from betimes.broker.storage.sqlite_file import StoreError

log = logging.getLogger(__name__)


class WriteLoop:
    """Commits, and writes the outboxes of all connections to their sockets."""

    def __init__(
        self,
        hub: Hub,
        lines: dict[Outbox, SocketLine],
        waiting_lines: WaitingLines,
        *,
        store: Store | None,
        broken: Callable[[], None],
    ) -> None:
        self.failure: StoreError | None = None  # why nothing can be committed any more
        self._hub = hub
        self._lines = lines
        self._crowd = waiting_lines
        self._store = store
        self._broken = broken  # is called when nothing can be committed any more
        self._is_to_commit = False
        self._draining: list[Connection] = []  # whose sockets take more
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = math.inf

    def flush(self) -> None:
        """Write what lies in the outboxes, now or, if something is to be committed first, after this turn."""
        store = self._store
        self._settle()
        if store is None or not (store.changed or self._is_to_commit):
            self._write()
        elif not self._is_to_commit:
            self._is_to_commit = True
            asyncio.get_running_loop().call_soon(self.commit_and_write)
        self._crowd.go_on()

    def commit_and_write(self) -> None:
        """Commit, and write what lies in the outboxes."""
        self._is_to_commit = False
        if self._commit():
            self._write()

    def give_up(self, error: StoreError) -> None:
        """Cut all connections: nothing can be committed any more."""
        self.failure = error
        log.error("%s", error)
        for line in list(self._lines.values()):
            if line.transport is not None:
                line.transport.abort()
        self._broken()

    def _commit(self) -> bool:
        """Commit what happened; False if that cannot be done, so that no client may hear of it."""
        store = self._store
        if store is None or not store.changed or self.failure is not None:
            return self.failure is None
        try:
            store.commit()
        except StoreError as error:
            self.give_up(error)
            return False
        return True

    def _write(self) -> None:
        """Write what lies in the outboxes; close sockets where that was all."""
        waiting, store, lines = self._hub.outboxes.waiting, self._store, self._lines
        while waiting:
            # What waited for a client may have gone into its outbox since.
            if store is not None and (store.changed or self.failure) and not self._commit():
                return
            outbox = waiting.pop()
            data = outbox.take_outbox()
            line = lines.get(outbox)
            if line is None or line.transport is None or line.connection is None:
                continue
            connection = line.connection
            if data:
                line.write(data)
            if not connection.is_held and connection.flow.is_paused(Pause.CONNECT_PENDING):
                line.connect_answered()
            session = connection.session
            if session is not None and session.scheduled is not None:
                line.bound_unsent(session.scheduled.below_us_bytes)
            if connection.closing:
                line.hang_up()
            elif connection.flow.blocked:
                if not line.is_full:
                    self._drain_soon(connection)
                elif line.transport.get_write_buffer_size() > TRANSPORT_BYTES_ENDURED:
                    line.pause(Pause.UNREAD_ANSWERS)

    def _drain_soon(self, connection: Connection) -> None:
        """Go on with what waits for a client in the next turn: others have theirs in between."""
        if not self._draining:
            asyncio.get_running_loop().call_soon(self._drain)
        self._draining.append(connection)

    def _drain(self) -> None:
        draining, self._draining = self._draining, []
        now_s, counters, units = asyncio.get_running_loop().time(), self._hub.counters, 0
        for place, connection in enumerate(draining):
            line, sent = self._lines.get(connection), counters.sent
            if line is not None and not line.is_full and not connection.closing:
                connection.drained(now_s)
                line.follow_flow()
                units += connection.spent + counters.sent - sent
            if units >= TURN_UNITS:  # the others in the next turn
                for each in draining[place + 1 :]:
                    self._drain_soon(each)
                break
        self.flush()

    def _settle(self) -> None:
        """Let the network do what is due, and have it asked again when the next thing is."""
        network, loop = self._hub.network, asyncio.get_running_loop()
        wake_at_s = network.wake_at_s()
        if wake_at_s <= loop.time():
            network.settle(loop.time())
            wake_at_s = network.wake_at_s()
        if wake_at_s != self._alarm_s:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_s, self._alarm = wake_at_s, None
            if wake_at_s < math.inf:
                self._alarm = loop.call_at(wake_at_s, self._wake)

    def _wake(self) -> None:
        self._alarm_s = math.inf
        self.flush()
