"""Flow control: when a connection is read, when it takes more, and which publishers wait for slow readers.

Queues are bounded, so what a reader cannot take is lost in the end. Often it could take it a moment later: a
hundred publishers may send in one turn of the loop what takes a reader ten. So the broker stops reading a
publisher at full speed while the readers that it filled up are blocked (back-pressure). No publisher waits
for long: while readers make progress, one publisher is let in now and then; a reader that makes none for a
while, or whose queue overflowed, is not waited for until it has caught up.

Sans-I/O: `net` pauses and resumes sockets as `Flow.may_read` says, and calls `Backpressure.look` on a timer.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

OUTBOX_BYTES_MAX = 256 * 1024  # then publications wait until the driver has written it
FULL_SPEED_BYTES = 32 * 1024  # a client that sends so much at once publishes as fast as it can
CROWDED_SHARE = 0.125  # of a queue: when it is so full, publishers wait that did not fill it, too
# Looks at a reader without progress until it is given up. They are counted, not timed: a broker that was kept
# from looking does not know whether the reader takes anything.
LOOKS_MAX = 50


class Pause(Enum):
    """Why the broker does not read a connection."""

    CONNECT_PENDING = auto()  # its CONNECT is not answered yet
    RATE_LIMIT = auto()  # it publishes faster than it may
    SLOW_READERS = auto()  # it filled up readers, and waits for them
    UNREAD_ANSWERS = auto()  # it sends and does not read what it is answered
    BUSY = auto()  # what it sent takes the broker more than one turn


class SlowReader(Protocol):
    """A session, as flow control sees it."""

    is_given_up: bool

    @property
    def flow(self) -> Flow | None:
        """Return the flow control of its connection; None: it has none."""

    @property
    def fullness(self) -> float:
        """Return which share of its queue is taken."""


class Flow:
    """The flow control of one connection."""

    __slots__ = ("_pauses", "blocked", "drains", "filled", "outbox_bytes_max", "pause_s")

    def __init__(self) -> None:
        self.blocked = False  # its outbox or its socket is full: publications wait in the session
        self.outbox_bytes_max = OUTBOX_BYTES_MAX
        self.drains = 0  # how often its socket took more again
        self.filled: tuple[SlowReader, ...] = ()  # the readers that its last publications filled up
        self.pause_s = 0.0  # the rate limit asks for a pause of reading; the driver takes it
        self._pauses: set[Pause] = set()

    @property
    def may_read(self) -> bool:
        """Tell whether the socket is to be read."""
        return not self._pauses

    def is_paused(self, why: Pause) -> bool:
        """Tell whether reading is paused for this reason."""
        return why in self._pauses

    def pause(self, why: Pause) -> None:
        """Stop reading, until the reason is gone."""
        self._pauses.add(why)

    def resume(self, why: Pause) -> None:
        """Read again, unless there is another reason not to."""
        self._pauses.discard(why)

    def resume_all(self) -> None:
        """Read again, whatever the reasons were: the connection is ending."""
        self._pauses.clear()

    def take_pause_s(self) -> float:
        """Return for how long the rate limit asks to pause, once."""
        pause_s, self.pause_s = self.pause_s, 0.0
        return pause_s

    def drained(self) -> None:
        """Note that the socket takes more again."""
        self.blocked = False
        self.drains += 1


class Backpressure:
    """Which publishers of a broker wait, and for which readers."""

    def __init__(self) -> None:
        self.just_filled: set[SlowReader] = set()  # by what is being handled at the moment
        self._slow: set[SlowReader] = set()  # readers that are connected and lag behind
        self._watched: dict[SlowReader, _Watched] = {}

    def handled(self, flow: Flow) -> None:
        """Note that one read of a connection was handled: which readers it filled up."""
        filled = self.just_filled
        flow.filled = tuple(filled) if filled else ()
        if filled:
            self._slow |= filled
            filled.clear()

    def must_wait(self, flow: Flow, size: int) -> bool:
        """Tell whether so many bytes of a publisher have to wait for slow readers."""
        if size < FULL_SPEED_BYTES:
            return False
        if any(self._is_waited_for(each) for each in flow.filled):
            return True
        slow = self._slow
        for reader in [each for each in slow if not self._is_waited_for(each)]:
            slow.remove(reader)
        return any(each.fullness >= CROWDED_SHARE for each in slow)

    def look(self) -> bool:
        """Tell whether any reader made progress since the last look; give up those that do not."""
        self._watched = {each: known for each, known in self._watched.items() if each.flow is not None}
        progress = [known.look(each) for each, known in self._watched.items()]
        return any(progress)

    def watch_none(self) -> None:
        """Forget what was seen of readers: no publisher waits for them."""
        self._watched.clear()

    def forget(self, reader: SlowReader) -> None:
        """Forget a reader whose session has ended."""
        self._slow.discard(reader)

    def _is_waited_for(self, reader: SlowReader) -> bool:
        flow = reader.flow
        if flow is None or not flow.blocked or reader.is_given_up:
            self._watched.pop(reader, None)
            return False
        if reader not in self._watched:
            self._watched[reader] = _Watched(flow.drains)
        return True


class _Watched:
    """A reader that publishers wait for."""

    __slots__ = ("_drains", "_looks")

    def __init__(self, drains: int) -> None:
        self._drains = drains
        self._looks = 0  # without progress

    def look(self, reader: SlowReader) -> bool:
        """Tell whether the reader took more since the last look; give it up after too many without that."""
        assert reader.flow is not None, "a reader without a connection is not watched"
        drains = reader.flow.drains
        if drains == self._drains:
            self._looks += 1
            reader.is_given_up |= self._looks >= LOOKS_MAX
            return False
        self._drains, self._looks = drains, 0
        return True
