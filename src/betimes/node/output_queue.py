"""What waits at a broker, and for whom? One pool for all links, in arrival order, as arrays.

A message waits once, with a row for each (destination, bound) it still has to reach; a link's output
queue is the rows that its ways are open to. So choosing, dropping and re-routing are one pass over flat
arrays, and a change of routes changes no queue. The arrays' columns are those of `qos.appraisal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from betimes.matching.compiled import kernel
from betimes.model.events import Event, EventId
from betimes.node.promised_shares import flow_of
from betimes.qos.appraisal import (
    BORN_S,
    BOUND_S,
    COUNT,
    DESTINATION,
    ENTERED_S,
    FIRST,
    GOES,
    GONE,
    HOPELESS,
    HOPELESS_SLOT,
    OPEN,
    PRICE,
    ROWS,
    SIZE_KB,
    SLOT,
    STAYS,
    VERDICT,
    WAIT_S,
    appraise_expired,
    best_candidate,
    best_candidates,
    journey_s,
)
from betimes.qos.strategies import Strategy

SLOTS_AT_FIRST, ROWS_AT_FIRST = 64, 1024
SLOT_COLUMNS, ROW_COLUMNS, RESULT_COLUMNS = 5, 5, 5
CLOSED = -1.0
JOURNEY_S_MIN = 1e-9  # a journey that takes no time divides by nothing


class Taken(NamedTuple):
    """What left the pool: destinations by number, with how many subscribers each had.

    Both are good until more is taken.
    """

    event: Event
    age_s: float
    wait_s: float  # here
    destinations: NDArray[np.int64]
    subscribers: NDArray[np.int64]
    all_expired: bool


class OutputQueue:
    """The waiting messages of one broker. A slot number is good until the next `put`."""

    def __init__(self) -> None:
        self.events: list[Event] = []  # by slot
        # By slot: of what is in no hurry the origin, which keeps its order.
        self._flows: list[str | None] = []
        self._newest: dict[str, int] = {}  # by origin: the highest number that came, while something waits
        self._turned: set[str] = set()  # origins of which an earlier number came after a later one
        self._watched: dict[str, list[int]] = {}  # by flow: the slots of its events, as they came
        self._slots = np.zeros((SLOTS_AT_FIRST, SLOT_COLUMNS))
        self._rows = np.zeros((ROWS_AT_FIRST, ROW_COLUMNS))
        self._results = np.zeros((RESULT_COLUMNS, SLOTS_AT_FIRST))
        self._taken = np.zeros((2, 0), dtype=np.int64)
        self._slot_count = 0
        self._row_count = 0
        self._waiting = 0
        self.waiting_kb = 0.0

    def __len__(self) -> int:
        return self._waiting

    def put(
        self,
        event: Event,
        demand: NDArray[np.float64],
        destinations: NDArray[np.int64],
        ways: NDArray[np.float64],
        *,
        born_s: float,
        now_s: float,
    ) -> NDArray[np.float64]:
        """Let an event wait for those rows of demand that go to these destinations.

        Return what each link promises: prices per second of the journey; CLOSED where it leads to none.
        """
        if self._slot_count == len(self._slots) or self._row_count + len(demand) > len(self._rows):
            self._make_room(len(demand))
        promise = np.empty(ways.shape[1])
        slot = self._slot_count
        self._row_count, is_hurried = _put(
            demand,
            destinations,
            ways,
            self._slots[slot],
            self._row_count,
            born_s,
            event.size_kb,
            now_s,
            self._rows,
            promise,
        )
        self.events.append(event)
        self._flows.append(None if is_hurried else event.id.origin)
        self._note_order(event.id)
        if self._watched and flow_of(event) in self._watched:
            self._watched[flow_of(event)].append(slot)
        self._slot_count += 1
        self._waiting += 1
        self.waiting_kb += event.size_kb
        return promise

    def move_last(self, destination: int, other: int) -> None:
        """Let what came last go to another destination in place of one."""
        rows = self._rows[int(self._slots[self._slot_count - 1, FIRST]) : self._row_count, DESTINATION]
        rows[rows == destination] = other

    def renumber(self, numbers: NDArray[np.float64]) -> None:
        """Give every destination the number that stands at its own."""
        rows = self._rows[: self._row_count, DESTINATION]
        waiting = rows >= 0.0
        rows[waiting] = numbers[rows[waiting].astype(np.int64)]

    def watch(self, flows: Iterable[str]) -> None:
        """Keep track of the events of these flows, and of no others, so that `first_of` finds them."""
        self._watched = {flow: [] for flow in flows}
        self._find_watched()

    def first_of(self, flow: str, link: int, ways: NDArray[np.float64], now_s: float) -> int | None:
        """Return the longest waiting slot of a watched flow that a link leads on; then `take` what GOES."""
        slots = self._watched.get(flow, [])
        for slot in tuple(slots):
            left, going = _mark(slot, self._slots, self._rows, ways, link, now_s)
            if going:
                return slot
            if not left:
                slots.remove(slot)
        return None

    def _find_watched(self) -> None:
        for flow in self._watched:
            self._watched[flow] = []
        for slot, event in enumerate(self.events) if self._watched else ():
            if flow_of(event) in self._watched:
                self._watched[flow_of(event)].append(slot)

    def waiting(self) -> list[Event]:
        """Return the events that wait; slot numbers are good no longer."""
        self._make_room(0)
        return list(self.events)

    def choose(
        self,
        strategy: Strategy,
        link: int,
        ways: NDArray[np.float64],
        free_at_s: NDArray[np.float64],
        contention: float,
        postponed_s: float,
        now_s: float,
        room: int = 1,
    ) -> tuple[list[int], list[int]]:
        """Return the slots this link should send next, the best first, and those where something is hopeless.

        A link that has room for several gets as many: to appraise everything for each would take long.
        """
        results = self._results
        found, hopeless = strategy.appraise(
            now_s,
            link,
            self._slot_count,
            self._slots,
            self._rows,
            ways,
            free_at_s,
            contention,
            postponed_s,
            strategy.gives_up_at(contention),
            results,
        )
        gone = results[HOPELESS_SLOT, :hopeless].astype(np.int64).tolist() if hopeless else []
        if found == 0:
            return [], gone
        if room > 1:
            best = best_candidates(results, found, *strategy.score, room)
            return self._in_order(results[SLOT, best].astype(np.int64).tolist(), found), gone
        only = best_candidate(results, found, *strategy.score) if found > 1 else 0
        return self._in_order([int(results[SLOT, only])], found), gone

    def _in_order(self, chosen: list[int], found: int) -> list[int]:
        """Let what is in no hurry go in the order of its origin: that costs nobody anything."""
        if len(chosen) == 1 and (found == 1 or self._flows[chosen[0]] is None):
            return chosen
        flows = [self._flows[slot] for slot in chosen]
        if flows.count(None) == len(chosen):
            return chosen
        candidates = self._results[SLOT, :found].astype(np.int64).tolist()  # as they came
        earliest = {
            flow: self._of_flow(candidates, flow) for flow in dict.fromkeys(flows) if flow is not None
        }
        return [
            slot if flow is None else next(earliest[flow]) for slot, flow in zip(chosen, flows, strict=True)
        ]

    def _of_flow(self, candidates: list[int], flow: str) -> Iterator[int]:
        slots = (slot for slot in candidates if self._flows[slot] == flow)
        return iter(sorted(slots, key=self._number)) if flow in self._turned else slots

    def _number(self, slot: int) -> int:
        return self.events[slot].id.number

    def _note_order(self, came: EventId) -> None:
        """Note where numbers come in no order any more: a lost link gives back what was under way."""
        if not self._waiting:
            self._newest.clear()
            self._turned.clear()
        if came.number < self._newest.get(came.origin, 0):
            self._turned.add(came.origin)
        else:
            self._newest[came.origin] = came.number

    def expired(self, now_s: float) -> list[int]:
        """Return the slots where something has expired, and mark it as hopeless."""
        found = appraise_expired(now_s, self._slot_count, self._slots, self._rows, self._results)
        return list(self._results[HOPELESS_SLOT, :found].astype(np.int64).tolist())

    def condemn_all(self) -> list[int]:
        """Mark everything as hopeless and return the slots that hold something."""
        self._make_room(0)
        self._rows[: self._row_count, VERDICT] = HOPELESS
        return list(range(self._slot_count))

    def take(self, slot: int, verdict: float, now_s: float) -> Taken:
        """Take out of the pool the rows of a slot on which the last appraisal gave this verdict."""
        if self._taken.shape[1] < len(self._rows):
            self._taken = np.zeros((2, len(self._rows)), dtype=np.int64)
        taken, event = self._taken, self.events[slot]
        found, left, alive, age_s, wait_s = _take(slot, self._slots, self._rows, verdict, now_s, taken)
        if left == 0:
            self._waiting -= 1
            self.waiting_kb -= event.size_kb
        return Taken(event, age_s, wait_s, taken[0, :found], taken[1, :found], alive == 0)

    def _make_room(self, rows_needed: int) -> None:
        """Squeeze out what is gone; grow where that is not enough."""
        keep = np.zeros(self._slot_count, dtype=np.bool_)
        self._row_count = int(_squeeze(self._slot_count, self._slots, self._rows, keep))
        self.events = [event for event, kept in zip(self.events, keep.tolist(), strict=True) if kept]
        self._flows = [flow for flow, kept in zip(self._flows, keep.tolist(), strict=True) if kept]
        self._slot_count = len(self.events)
        self._find_watched()
        if self._slot_count * 2 > len(self._slots):
            self._slots = np.concatenate([self._slots, np.zeros_like(self._slots)])
            self._results = np.zeros((RESULT_COLUMNS, len(self._slots)))
        while (self._row_count + rows_needed) * 2 > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])


@kernel
def _put(
    demand: NDArray[np.float64],
    asked: NDArray[np.int64],
    ways: NDArray[np.float64],
    slot: NDArray[np.float64],
    first: int,
    born_s: float,
    size_kb: float,
    now_s: float,
    rows: NDArray[np.float64],
    promise: NDArray[np.float64],
) -> tuple[int, bool]:
    """Copy the rows asked for behind the last one; say what links promise.

    Return where the rows now end, and whether a subscriber among them states a bound.
    """
    promise[:] = CLOSED
    is_hurried = False
    wanted = np.zeros(ways.shape[2], np.bool_)
    wanted[asked] = True
    end = first
    for each in range(len(demand)):
        destination = int(demand[each, DESTINATION])
        if wanted[destination]:
            rows[end] = demand[each]
            end += 1
            is_hurried |= demand[each, COUNT] > 0.0 and demand[each, BOUND_S] < np.inf
            for link in range(ways.shape[1]):
                if ways[OPEN, link, destination] != 0.0:
                    journey = journey_s(ways, link, destination, size_kb) + ways[WAIT_S, link, destination]
                    promise[link] = max(promise[link], 0.0) + demand[each, PRICE] / max(
                        journey, JOURNEY_S_MIN
                    )
    slot[FIRST], slot[ROWS], slot[BORN_S] = first, end - first, born_s
    slot[SIZE_KB], slot[ENTERED_S] = size_kb, now_s
    return end, is_hurried


@kernel
def _mark(
    slot: int,
    slots: NDArray[np.float64],
    rows: NDArray[np.float64],
    ways: NDArray[np.float64],
    link: int,
    now_s: float,
) -> tuple[int, int]:
    """Give the verdict GOES to the rows of a slot that a link leads to, and on the average in time.

    Return how many rows there still are, and how many go.
    """
    first = int(slots[slot, FIRST])
    age_s = now_s - slots[slot, BORN_S]
    left, going = 0, 0
    for row in range(first, first + int(slots[slot, ROWS])):
        destination = int(rows[row, DESTINATION])
        rows[row, VERDICT] = STAYS
        if destination < 0:
            continue
        left += 1
        if ways[OPEN, link, destination] != 0.0:
            arrives_s = age_s + journey_s(ways, link, destination, slots[slot, SIZE_KB])
            if rows[row, BOUND_S] >= arrives_s:
                rows[row, VERDICT] = GOES
                going += 1
    return left, going


@kernel
def _take(
    slot: int,
    slots: NDArray[np.float64],
    rows: NDArray[np.float64],
    verdict: float,
    now_s: float,
    out: NDArray[np.int64],
) -> tuple[int, int, int, float, float]:
    """Mark the rows with this verdict as gone, and list destinations and subscribers in `out`.

    Return how many destinations there are, how many rows stay, how many that go are in time, and the
    message's age and its wait here.
    """
    first = int(slots[slot, FIRST])
    found, left, alive = 0, 0, 0
    age_s = now_s - slots[slot, BORN_S]
    for row in range(first, first + int(slots[slot, ROWS])):
        destination = int(rows[row, DESTINATION])
        if destination < 0:
            continue
        if rows[row, VERDICT] != verdict:
            left += 1
            continue
        if rows[row, BOUND_S] >= age_s:
            alive += 1
        # rows are sorted by destination, so equal ones are neighbours
        if found == 0 or out[0, found - 1] != destination:
            out[0, found] = destination
            out[1, found] = 0
            found += 1
        out[1, found - 1] += int(rows[row, COUNT])
        rows[row, DESTINATION] = GONE
    return found, left, alive, age_s, now_s - slots[slot, ENTERED_S]


@kernel
def _squeeze(
    slot_count: int, slots: NDArray[np.float64], rows: NDArray[np.float64], keep: NDArray[np.bool_]
) -> int:
    """Move what still waits to the front, in order; say which slots were kept and how many rows there are."""
    next_slot, next_row = 0, 0
    for slot in range(slot_count):
        first, start = int(slots[slot, FIRST]), next_row
        for row in range(first, first + int(slots[slot, ROWS])):
            if rows[row, DESTINATION] >= 0.0:
                rows[next_row] = rows[row]
                next_row += 1
        if next_row > start:
            keep[slot] = True
            slots[next_slot] = slots[slot]
            slots[next_slot, FIRST] = start
            slots[next_slot, ROWS] = next_row - start
            next_slot += 1
    return next_row
