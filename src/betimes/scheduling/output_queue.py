"""The waiting messages of a broker: one pool for all links, in arrival order, as arrays.

A message waits once, with a row for each (destination, bound) that it still has to reach. The output queue
of a link is the set of rows that its routes are open to. So choosing, dropping and re-routing are one pass
over flat arrays, and new routes change no queue. The arrays' columns are those of `scheduling.appraisal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from betimes.kernels.types import Flags, Integers, Numbers
from betimes.model.events import Event, EventId
from betimes.scheduling.appraisal import (
    DESTINATION,
    FIRST,
    GOES,
    HOPELESS,
    HOPELESS_SLOT,
    PRICE,
    ROWS,
    SLOT,
    SLOT_FACTS,
    VERDICT,
    appraise_expired,
    best_candidates,
)
from betimes.scheduling.effects import made
from betimes.scheduling.queue_kernels import (
    NOT_TAKEN,
    NUMBER_OF,
    choice_book,
    mark_rows,
    put_rows,
    squeeze_rows,
    take_next,
    take_rows,
)
from betimes.scheduling.reserved_flows import flow_of
from betimes.scheduling.strategies import Strategy

SLOTS_AT_FIRST, ROWS_AT_FIRST = 64, 1024
ROW_COLUMNS, RESULT_COLUMNS = 5, 5
NOT_BOOKED = np.zeros(0)

# The message sent: the event, its age, its wait here, and its destinations, which are valid until the next is
# sent.
Going = tuple[Event, float, float, Integers]


class TakenMessage(NamedTuple):
    """A message that left the pool: destinations by number, with the number of subscribers at each.

    Both are valid until the next message is taken.
    """

    event: Event
    age_s: float
    wait_s: float  # here
    destinations: Integers
    subscribers: Integers
    all_expired: bool


class OutputQueue:
    """The waiting messages of one broker. A slot number is valid until the next `put`."""

    def __init__(self) -> None:
        self.events: list[Event] = []  # by slot
        # By slot: the origin of a message without a bound; such messages keep the order of their origin.
        self._flows: list[str | None] = []
        self._newest: dict[str, int] = {}  # by origin: the highest number that arrived while a message waited
        self._turned: set[str] = set()  # origins of which an earlier number arrived after a later one
        self._watched: dict[str, list[int]] = {}  # by flow: the slots of its events, in order of arrival
        self._slots = np.zeros((SLOTS_AT_FIRST, SLOT_FACTS))
        self._rows = np.zeros((ROWS_AT_FIRST, ROW_COLUMNS))
        self._results = np.zeros((RESULT_COLUMNS, SLOTS_AT_FIRST))
        self._taken = np.zeros((2, ROWS_AT_FIRST), dtype=np.int64)
        self._going = np.zeros((2, ROWS_AT_FIRST), dtype=np.int64)
        self._slot_count = 0
        self._row_count = 0
        self._booked_ways = self._booked_free_at_s = NOT_BOOKED
        self.count = 0  # of messages
        self.waiting_kb = 0.0

    def __len__(self) -> int:
        return self.count

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_booked_ways": NOT_BOOKED}  # a copy has arrays of its own

    def put(
        self, event: Event, demand: Numbers, destinations: Integers, *, born_s: float, now_s: float
    ) -> None:
        """Queue an event for those rows of demand that have these destinations, in ascending order."""
        if self._slot_count == len(self._slots) or self._row_count + len(demand) > len(self._rows):
            self._make_room(len(demand))
        slot, event_id, size_kb = self._slot_count, event.id, event.size_kb
        self._row_count, is_hurried = put_rows(
            demand, destinations, self._slots, slot, self._row_count, born_s, size_kb, now_s, self._rows
        )
        self.events.append(event)
        self._flows.append(None if is_hurried else event_id.origin)
        self._note_order(event_id)
        if self._watched and flow_of(event) in self._watched:
            self._watched[flow_of(event)].append(slot)
        self._slot_count = slot + 1
        self.count += 1
        self.waiting_kb += size_kb

    def move_last(self, destination: int, other: int) -> None:
        """Change one destination of the message that arrived last to another."""
        rows = self._rows[int(self._slots[self._slot_count - 1, FIRST]) : self._row_count, DESTINATION]
        rows[rows == destination] = other

    def renumber(self, numbers: Numbers) -> None:
        """Replace every destination number by `numbers[number]`."""
        rows = self._rows[: self._row_count, DESTINATION]
        waiting = rows >= 0.0
        rows[waiting] = numbers[rows[waiting].astype(np.int64)]

    def watch(self, flows: Iterable[str]) -> None:
        """Track the slots of these flows, and of no others, so that `first_of` finds them."""
        self._watched = {flow: [] for flow in flows}
        self._find_watched()

    def first_of(self, flow: str, link: int, ways: Numbers, now_s: float) -> int | None:
        """Return the longest waiting slot of a watched flow that a link can send; then `take` what GOES."""
        slots = self._watched.get(flow, [])
        for slot in tuple(slots):
            left, going = mark_rows(slot, self._slots, self._rows, ways, link, now_s)
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

    def count_for(self, destinations: Flags) -> int:
        """Return how many waiting messages have one of these destinations. O(waiting rows)."""
        if not self.count or not destinations.any():
            return 0
        rows = self._rows[: self._row_count, DESTINATION].astype(np.int64)
        meets = np.concatenate([(rows >= 0) & destinations[rows], [False]])
        slots = self._slots[: self._slot_count]
        slots = slots[slots[:, ROWS] > 0.0]
        first, count = slots[:, FIRST].astype(np.int64), slots[:, ROWS].astype(np.int64)
        ends = np.stack([first, first + count], axis=1).ravel()
        return int((np.add.reduceat(meets, ends)[::2] > 0).sum())

    def waiting(self) -> list[Event]:
        """Return the waiting events; slot numbers become invalid."""
        self._make_room(0)
        return list(self.events)

    def choose(
        self,
        strategy: Strategy,
        link: int,
        ways: Numbers,
        free_at_s: Numbers,
        contention: float,
        postponed_s: float,
        now_s: float,
        room: int = 1,
    ) -> tuple[list[int], list[int]]:
        """Return the slots that this link should send next, the best first, and the slots with hopeless rows.

        A link with room for several messages gets as many: one appraisal for each would take too long.
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
        gone = self._hopeless(hopeless)
        if found == 0:
            return [], gone
        best = best_candidates(results, found, *strategy.score, room)
        return self._in_order(results[SLOT, best].astype(np.int64).tolist(), found), gone

    def take_next(
        self,
        strategy: Strategy,
        link: int,
        ways: Numbers,
        free_at_s: Numbers,
        contention: float,
        postponed_s: float,
        now_s: float,
    ) -> tuple[Going | None, list[int]]:
        """Take out what this link should send next, if anything; return the slots with hopeless rows.

        The same as `choose` with a room of one and then `take` of what GOES, in less time.
        """
        if ways is not self._booked_ways or free_at_s is not self._booked_free_at_s:
            self._booked_ways, self._booked_free_at_s = ways, free_at_s
            self._book = choice_book((self._slots, self._rows, self._results, self._going), ways, free_at_s)
        benefit, postponed, lifetime = strategy.score
        hopeless, found, slot, count, left, age_s, wait_s = take_next(
            self._book,
            NUMBER_OF[strategy.appraise],
            now_s,
            link,
            self._slot_count,
            contention,
            postponed_s,
            strategy.gives_up_at(contention),
            benefit,
            postponed,
            lifetime,
        )
        gone = self._hopeless(hopeless) if hopeless else []
        if not found:
            return None, gone
        if count == NOT_TAKEN:
            (slot,) = self._in_order([slot], found)
            taken = self.take(slot, GOES, now_s)
            return (taken.event, taken.age_s, taken.wait_s, taken.destinations.copy()), gone
        event = self.events[slot]
        if left == 0:
            self.count -= 1
            self.waiting_kb -= event.size_kb
        return (event, age_s, wait_s, self._going[0, :count]), gone

    def _hopeless(self, count: int) -> list[int]:
        return list(self._results[HOPELESS_SLOT, :count].astype(np.int64).tolist())

    def _in_order(self, chosen: list[int], found: int) -> list[int]:
        """Send messages without a bound in the order of their origin, which delays no other message."""
        if len(chosen) == 1 and (found == 1 or self._flows[chosen[0]] is None):
            return chosen
        flows = [self._flows[slot] for slot in chosen]
        if flows.count(None) == len(chosen):
            return chosen
        candidates = self._results[SLOT, :found].astype(np.int64).tolist()  # in order of arrival
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
        """Note origins whose numbers are out of order: a lost link gives back messages in flight."""
        if not self.count:
            self._newest.clear()
            self._turned.clear()
        if came.number < self._newest.get(came.origin, 0):
            self._turned.add(came.origin)
        else:
            self._newest[came.origin] = came.number

    def expired(self, now_s: float) -> list[int]:
        """Return the slots with expired rows, and mark those rows as hopeless."""
        found = appraise_expired(now_s, self._slot_count, self._slots, self._rows, self._results)
        return self._hopeless(found)

    def condemn_all(self) -> list[int]:
        """Mark all rows as hopeless and return the slots that have rows."""
        self._make_room(0)
        self._rows[: self._row_count, VERDICT] = HOPELESS
        return list(range(self._slot_count))

    def condemn_cheapest(self, most: int, price: float) -> list[int]:
        """Mark the slots with the lowest prices as hopeless, of those below a price; return them.

        What must not be lost is left out. O(waiting rows).
        """
        self._make_room(0)
        slots = self._slots[: self._slot_count]
        if not len(slots):
            return []
        prices = np.add.reduceat(self._rows[: self._row_count, PRICE], slots[:, FIRST].astype(np.int64))
        cheap = np.flatnonzero(prices < price)
        cheapest = cheap[np.argsort(prices[cheap], kind="stable")].tolist()
        found = [slot for slot in cheapest if not self.events[slot].is_durable][:most]
        for slot in found:
            first = int(self._slots[slot, FIRST])
            self._rows[first : first + int(self._slots[slot, ROWS]), VERDICT] = HOPELESS
        return found

    def take(self, slot: int, verdict: float, now_s: float) -> TakenMessage:
        """Remove from the pool the rows of a slot to which the last appraisal gave this verdict."""
        taken, event = self._taken, self.events[slot]
        found, left, alive, age_s, wait_s = take_rows(slot, self._slots, self._rows, verdict, now_s, taken)
        if left == 0:
            self.count -= 1
            self.waiting_kb -= event.size_kb
        return made(TakenMessage, (event, age_s, wait_s, taken[0, :found], taken[1, :found], alive == 0))

    def _make_room(self, rows_needed: int) -> None:
        """Compact the arrays; enlarge them if that is not enough."""
        keep = np.zeros(self._slot_count, dtype=np.bool_)
        self._row_count = int(squeeze_rows(self._slot_count, self._slots, self._rows, keep))
        self.events = [event for event, kept in zip(self.events, keep.tolist(), strict=True) if kept]
        self._flows = [flow for flow, kept in zip(self._flows, keep.tolist(), strict=True) if kept]
        self._slot_count = len(self.events)
        self._find_watched()
        if self._slot_count * 2 > len(self._slots):
            self._slots = np.concatenate([self._slots, np.zeros_like(self._slots)])
            self._results = np.zeros((RESULT_COLUMNS, len(self._slots)))
        while (self._row_count + rows_needed) * 2 > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._taken = np.zeros((2, len(self._rows)), dtype=np.int64)
            self._going = np.zeros((2, len(self._rows)), dtype=np.int64)
        self._booked_ways = NOT_BOOKED
