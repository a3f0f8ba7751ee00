"""The kernels of the output queue: put, mark, take and compact. Compiled, because each message needs them.

The arrays are those of `scheduling.appraisal`; `output_queue` owns them.
"""

from __future__ import annotations

import numpy as np

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Flags, Integers, Numbers
from betimes.scheduling.appraisal import (
    BORN_S,
    BOUND_S,
    COUNT,
    DESTINATION,
    ENTERED_S,
    FIRST,
    GOES,
    GONE,
    HURRIED,
    OPEN,
    PRICE,
    ROWS,
    SIZE_KB,
    STAYS,
    VERDICT,
    WAIT_S,
    journey_s,
)

CLOSED = -1.0  # the value of a link that leads nowhere
JOURNEY_S_MIN = 1e-9  # avoids a division by zero for a journey that takes no time


@inlined
def copy_row(source: Numbers, row: int, target: Numbers, place: int) -> None:
    """Copy one row: element by element takes a fraction of the time of a slice."""
    for column in range(source.shape[1]):
        target[place, column] = source[row, column]


@kernel
def put_rows(
    demand: Numbers,
    asked: Integers,
    slots: Numbers,
    slot: int,
    first: int,
    born_s: float,
    size_kb: float,
    now_s: float,
    rows: Numbers,
) -> tuple[int, bool]:
    """Append copies of the requested rows (by ascending destinations, the order of the rows).

    Return the new end of the rows, and whether a subscriber among them states a bound.
    """
    is_hurried = False
    end, place = first, 0
    for each in range(len(demand)):
        while place < len(asked) and asked[place] < demand[each, DESTINATION]:
            place += 1
        if place == len(asked):
            break
        if asked[place] == demand[each, DESTINATION]:
            copy_row(demand, each, rows, end)
            end += 1
            is_hurried |= demand[each, COUNT] > 0.0 and demand[each, BOUND_S] < np.inf
    slots[slot, FIRST], slots[slot, ROWS], slots[slot, BORN_S] = first, end - first, born_s
    slots[slot, SIZE_KB], slots[slot, ENTERED_S], slots[slot, HURRIED] = size_kb, now_s, is_hurried
    return end, is_hurried


@kernel
def promise_of_links(
    demand: Numbers, asked: Integers, ways: Numbers, size_kb: float, promise: Numbers
) -> None:
    """Write the value of each link for the requested rows: prices per second of the journey.

    CLOSED if the link leads to none of them.
    """
    promise[:] = CLOSED
    place = 0
    for each in range(len(demand)):
        destination = int(demand[each, DESTINATION])
        while place < len(asked) and asked[place] < destination:
            place += 1
        if place == len(asked):
            break
        if asked[place] != destination:
            continue
        for link in range(ways.shape[1]):
            if ways[OPEN, link, destination] != 0.0:
                journey = journey_s(ways, link, destination, size_kb) + ways[WAIT_S, link, destination]
                promise[link] = max(promise[link], 0.0) + demand[each, PRICE] / max(journey, JOURNEY_S_MIN)


@kernel
def mark_rows(
    slot: int, slots: Numbers, rows: Numbers, ways: Numbers, link: int, now_s: float
) -> tuple[int, int]:
    """Give the verdict GOES to the rows of a slot that a link leads to, in time on average.

    Return the number of rows that are left, and the number that go.
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
def take_rows(
    slot: int, slots: Numbers, rows: Numbers, verdict: float, now_s: float, out: Integers
) -> tuple[int, int, int, float, float]:
    """Mark the rows with this verdict as gone, and list destinations and subscribers in `out`.

    Return the number of destinations, the number of rows that stay, the number of rows that go in time, and
    the message's age and its wait here.
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
        # rows are sorted by destination, so equal ones are adjacent
        if found == 0 or out[0, found - 1] != destination:
            out[0, found] = destination
            out[1, found] = 0
            found += 1
        out[1, found - 1] += int(rows[row, COUNT])
        rows[row, DESTINATION] = GONE
    if left == 0:
        slots[slot, ROWS] = 0  # later passes skip the slot
    return found, left, alive, age_s, now_s - slots[slot, ENTERED_S]


@kernel
def squeeze_rows(slot_count: int, slots: Numbers, rows: Numbers, keep: Flags) -> int:
    """Move the waiting rows to the front, in order; report the slots kept and return the number of rows."""
    next_slot, next_row = 0, 0
    for slot in range(slot_count):
        first, start = int(slots[slot, FIRST]), next_row
        for row in range(first, first + int(slots[slot, ROWS])):
            if rows[row, DESTINATION] >= 0.0:
                copy_row(rows, row, rows, next_row)
                next_row += 1
        if next_row > start:
            keep[slot] = True
            slots[next_slot] = slots[slot]
            slots[next_slot, FIRST] = start
            slots[next_slot, ROWS] = next_row - start
            next_slot += 1
    return next_row
