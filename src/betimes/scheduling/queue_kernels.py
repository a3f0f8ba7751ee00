"""The kernels of the output queue: put, mark, take, compact and choose. Each message needs them.

The arrays are those of `scheduling.appraisal`; `output_queue` owns them. `take_next` is for drivers that
send one message at a time: it equals an appraisal, `best_candidate` and `take_rows` in sequence, in one call
with one address book, because calling a kernel takes longer than its work, and every array argument adds
time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from betimes.kernels.address_book import address_book, list_in, table_in
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
    SLOT,
    STAYS,
    VERDICT,
    WAIT_S,
    WAY_FACTS,
    Appraise,
    appraise_any_way,
    appraise_benefit,
    appraise_lifetime,
    best_candidate,
    journey_s,
)

CLOSED = -1.0  # the value of a link that leads nowhere
JOURNEY_S_MIN = 1e-9  # avoids a division by zero for a journey that takes no time
# entries of the address book
BOOKED_SLOTS, BOOKED_ROWS, BOOKED_RESULTS, BOOKED_TAKEN, BOOKED_WAYS, BOOKED_FREE_AT_S = range(6)
# passing a kernel as an argument costs time; passing a number does not
BY_LIFETIME, BY_BENEFIT, BY_ANY_WAY = range(3)
NUMBER_OF: dict[Appraise, int] = {
    appraise_lifetime: BY_LIFETIME,
    appraise_benefit: BY_BENEFIT,
    appraise_any_way: BY_ANY_WAY,
}
# the arguments of an appraisal
Setting = tuple[float, int, int, Numbers, Numbers, Numbers, Numbers, float, float, float, Numbers]
NOTHING = -1  # is sent
NOT_TAKEN = -1  # a message without a bound may have to let another go first


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


def choice_book(arrays: Sequence[Numbers | Integers], ways: Numbers, free_at_s: Numbers) -> Integers:
    """Return the address book of slots, rows, results, room for what is taken (in this order) and routes."""
    assert ways.flags.c_contiguous, "a copy would be gone when it is looked at"
    facts, links, destinations = ways.shape
    return address_book((*arrays, ways.reshape(facts * links, destinations), free_at_s))


@inlined
def appraise(appraisal: int, setting: Setting) -> tuple[int, int]:
    """Run the appraisal that has this number."""
    if appraisal == BY_LIFETIME:
        return appraise_lifetime(*setting)
    if appraisal == BY_BENEFIT:
        return appraise_benefit(*setting)
    return appraise_any_way(*setting)


@kernel
def take_next(
    book: Integers,
    appraisal: int,
    now_s: float,
    link: int,
    slot_count: int,
    contention: float,
    postponed_s: float,
    hopeless_at: float,
    benefit: float,
    postponed: float,
    lifetime: float,
) -> tuple[int, int, int, int, int, float, float]:
    """Appraise the waiting messages, and take out the rows that go of the candidate with the highest score.

    Nothing is taken if that candidate has no bound and there are others. Return the number of hopeless
    slots, the number of candidates, the slot (or NOTHING), the number of destinations taken (or NOT_TAKEN),
    the number of rows that stay, and the message's age and its wait here.
    """
    slots, rows = table_in(book, BOOKED_SLOTS, np.float64), table_in(book, BOOKED_ROWS, np.float64)
    results, flat = table_in(book, BOOKED_RESULTS, np.float64), table_in(book, BOOKED_WAYS, np.float64)
    ways = flat.reshape((WAY_FACTS, flat.shape[0] // WAY_FACTS, flat.shape[1]))
    free_at_s = list_in(book, BOOKED_FREE_AT_S, np.float64)
    found, hopeless = appraise(
        appraisal,
        (
            now_s,
            link,
            slot_count,
            slots,
            rows,
            ways,
            free_at_s,
            contention,
            postponed_s,
            hopeless_at,
            results,
        ),
    )
    if found == 0:
        return hopeless, found, NOTHING, 0, 0, 0.0, 0.0
    slot = int(results[SLOT, best_candidate(results, found, benefit, postponed, lifetime)])
    if found > 1 and slots[slot, HURRIED] == 0.0:
        return hopeless, found, slot, NOT_TAKEN, 0, 0.0, 0.0
    taken = table_in(book, BOOKED_TAKEN, np.int64)
    count, left, _, age_s, wait_s = take_rows(slot, slots, rows, GOES, now_s, taken)
    return hopeless, found, slot, count, left, age_s, wait_s
