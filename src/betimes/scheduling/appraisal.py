"""The value of each waiting message to a link that has just become free (000, sections 5.1 to 5.4).

One pass over all messages that a broker holds. The pass uses arrays instead of objects, because it runs for
every message sent. A *slot* is a waiting message, a *row* is one (destination, bound) of it, a *way* is a
route: one (neighbour, destination). Every appraisal has the same signature (`Appraise`): it lists the
candidates and the hopeless slots in `results`, writes a verdict into every row that it examined, and
returns both counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from betimes.kernels.compile import kernel
from betimes.kernels.types import Integers, Numbers
from betimes.scheduling.success import forward_delay_mean_s, success_probability

# slots[slot, …]; HURRIED is not 0 if a subscriber states a bound
FIRST, ROWS, BORN_S, SIZE_KB, ENTERED_S, HURRIED = range(6)
SLOT_FACTS = 6
# rows[row, …], sorted by destination; a row that was sent or dropped has destination GONE; VERDICT is the
# result of the last appraisal, for the link of that appraisal
DESTINATION, BOUND_S, PRICE, COUNT, VERDICT = range(5)
NOBODY_YET = 1e-9  # the weight of rows without a subscriber: small, but the message is kept
GONE = -1.0
STAYS, GOES, HOPELESS = 0.0, 1.0, 2.0
# ways[…, neighbour, destination]; WAIT_S is the mean wait of recent messages behind the neighbour
OPEN, FIXED_S, S_PER_KB_MEAN, S_PER_KB_SD, WAIT_S = range(5)
WAY_FACTS = 5
# results[…, candidate]
SLOT, BENEFIT, POSTPONED, LIFETIME_S, HOPELESS_SLOT = range(5)

# (now_s, link, slot_count, slots, rows, ways, free_at_s by link, contention, postponed_s, hopeless_at,
# results); contention is 0 if nothing waits and 1 if messages wait a transmission time or more
Appraise = Callable[
    [float, int, int, Numbers, Numbers, Numbers, Numbers, float, float, float, Numbers], tuple[int, int]
]


class Weights(NamedTuple):
    """The weights of a candidate's score; the link sends the candidate with the highest score first."""

    benefit: float = 0.0  # of EB, eq. 3
    postponed_benefit: float = 0.0  # of EB', eq. 8
    lifetime_s: float = 0.0  # of the mean over the subscribers that it can still reach before their bounds


@kernel
def best_candidate(results: Numbers, found: int, benefit: float, postponed: float, lifetime: float) -> int:
    """Return the candidate with the highest score; among equals the first, which has waited longest."""
    best, highest = 0, 0.0
    for each in range(found):
        score = benefit * results[BENEFIT, each] + postponed * results[POSTPONED, each]
        if lifetime != 0.0:  # the lifetime is infinite without a bound
            score += lifetime * results[LIFETIME_S, each]
        if each == 0 or score > highest:
            best, highest = each, score
    return best


def best_candidates(
    results: Numbers, found: int, benefit: float, postponed: float, lifetime: float, count: int
) -> Integers:
    """Return `count` candidates in descending order of score; among equals the first."""
    scores = benefit * results[BENEFIT, :found] + postponed * results[POSTPONED, :found]
    if lifetime != 0.0:
        scores += lifetime * results[LIFETIME_S, :found]
    if count < found:
        least = -np.partition(-scores, count - 1)[count - 1]
        above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
        chosen = np.sort(np.concatenate([above, equal[: count - len(above)]]))
    else:
        chosen = np.arange(found)
    return chosen[np.argsort(-scores[chosen], kind="stable")]


@kernel
def journey_s(ways: Numbers, link: int, destination: int, size_kb: float) -> float:
    """Return the mean time from sending to arrival by this route if nothing waits on it (eq. 4)."""
    return forward_delay_mean_s(
        ways[FIXED_S, link, destination], size_kb, ways[S_PER_KB_MEAN, link, destination]
    )


@kernel
def success_by_way(ways: Numbers, link: int, destination: int, size_kb: float, remaining_s: float) -> float:
    """Return the probability of arrival within the remaining time if sent now by this route (eq. 5)."""
    slack_s = remaining_s - journey_s(ways, link, destination, size_kb)
    return success_probability(slack_s, size_kb * ways[S_PER_KB_SD, link, destination])


@kernel
def appraise_lifetime(
    now_s: float,
    link: int,
    slot_count: int,
    slots: Numbers,
    rows: Numbers,
    ways: Numbers,
    _free_at_s: Numbers,
    _contention: float,
    _postponed_s: float,
    _hopeless_at: float,
    results: Numbers,
) -> tuple[int, int]:
    """Compute the remaining lifetime only: for FIFO and RL, which drop only what has expired."""
    found, hopeless = 0, 0
    for slot in range(slot_count):
        first = int(slots[slot, FIRST])
        end = first + int(slots[slot, ROWS])
        age_s = now_s - slots[slot, BORN_S]
        lifetime_s, alive, eligible = 0.0, 0.0, False
        for row in range(first, end):
            destination = int(rows[row, DESTINATION])
            rows[row, VERDICT] = STAYS
            if destination < 0 or ways[OPEN, link, destination] == 0.0:
                continue
            eligible = True
            rows[row, VERDICT] = GOES
            remaining_s = rows[row, BOUND_S] - age_s
            if remaining_s >= 0.0:
                count = max(rows[row, COUNT], NOBODY_YET)
                alive += count
                lifetime_s += count * remaining_s
        if alive > 0.0:
            results[SLOT, found] = slot
            results[LIFETIME_S, found] = lifetime_s / alive
            found += 1
        elif eligible:
            results[HOPELESS_SLOT, hopeless] = slot
            hopeless += 1
            _condemn(rows, first, end)
    return found, hopeless


@kernel
def appraise_benefit(
    now_s: float,
    link: int,
    slot_count: int,
    slots: Numbers,
    rows: Numbers,
    ways: Numbers,
    _free_at_s: Numbers,
    _contention: float,
    postponed_s: float,
    hopeless_at: float,
    results: Numbers,
) -> tuple[int, int]:
    """Compute EB and EB' over the subscribers behind the link (eqs. 3 and 8), each by its one shortest path.

    A message is hopeless if none of these subscribers has a probability above `hopeless_at` (eq. 11).
    """
    found, hopeless = 0, 0
    for slot in range(slot_count):
        first = int(slots[slot, FIRST])
        end = first + int(slots[slot, ROWS])
        size_kb, age_s = slots[slot, SIZE_KB], now_s - slots[slot, BORN_S]
        benefit, postponed, hope, eligible = 0.0, 0.0, 0.0, False
        for row in range(first, end):
            destination = int(rows[row, DESTINATION])
            rows[row, VERDICT] = STAYS
            if destination < 0 or ways[OPEN, link, destination] == 0.0:
                continue
            eligible = True
            rows[row, VERDICT] = GOES
            remaining_s = rows[row, BOUND_S] - age_s - ways[WAIT_S, link, destination]
            success = success_by_way(ways, link, destination, size_kb, remaining_s)
            later = success_by_way(ways, link, destination, size_kb, remaining_s - postponed_s)
            hope = max(hope, success)
            benefit += success * rows[row, PRICE]
            postponed += later * rows[row, PRICE]
        if hope > hopeless_at:
            results[SLOT, found] = slot
            results[BENEFIT, found] = benefit
            results[POSTPONED, found] = postponed
            found += 1
        elif eligible:
            results[HOPELESS_SLOT, hopeless] = slot
            hopeless += 1
            _condemn(rows, first, end)
    return found, hopeless


@kernel
def appraise_expired(now_s: float, slot_count: int, slots: Numbers, rows: Numbers, results: Numbers) -> int:
    """Find the destinations all of whose bounds have passed; return the number of slots that have some.

    A destination with an open bound keeps its other rows: they are counted as missed at that destination.
    """
    found = 0
    for slot in range(slot_count):
        row = int(slots[slot, FIRST])
        end = row + int(slots[slot, ROWS])
        age_s = now_s - slots[slot, BORN_S]
        any_late = False
        while row < end:
            stop = destination_end(rows, row, end)
            late = rows[row, DESTINATION] >= 0.0 and rows[row:stop, BOUND_S].max() < age_s
            rows[row:stop, VERDICT] = HOPELESS if late else STAYS
            any_late |= late
            row = stop
        if any_late:
            results[HOPELESS_SLOT, found] = slot
            found += 1
    return found


@kernel
def destination_end(rows: Numbers, row: int, end: int) -> int:
    """Return the end of the rows that have this row's destination."""
    stop = row + 1
    while stop < end and rows[stop, DESTINATION] == rows[row, DESTINATION]:
        stop += 1
    return stop


@kernel
def _condemn(rows: Numbers, first: int, end: int) -> None:
    """Change the verdict GOES to HOPELESS."""
    for row in range(first, end):
        if rows[row, VERDICT] == GOES:
            rows[row, VERDICT] = HOPELESS
