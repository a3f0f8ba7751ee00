"""The value of each waiting message to a link that has just become free (000, sections 5.1 to 5.4).

One pass over all messages that a broker holds. The pass uses arrays instead of objects, because it runs for
every message sent. A *slot* is a waiting message, a *row* is one (destination, bound) of it, a *way* is a
route: one (neighbour, destination). Every appraisal has the same signature (`Appraise`): it lists the
candidates and the hopeless slots in `results`, writes a verdict into every row that it examined, and
returns both counts.

Late binding (`appraise_any_way`) is ours; 000 binds a message to one path. Single shortest paths leave
parallel links idle while messages wait for busy ones. With late binding, a free link examines every message
that it brings nearer to its destination. If nothing waits, the link takes those destinations that no earlier
route would serve better. The more messages wait, the worse the link may be than the best route, because
destinations that travel together cost one transmission. Every copy carries its own set of destinations, so
nothing is delivered twice. Every hop is nearer to the destinations, so no message circles. The waits
measured downstream decide only between routes: the order of messages depends on the benefit alone, and
hopelessness on the journey alone, because a mean wait is not that of a message that is worth more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from betimes.kernels.compile import inlined, kernel
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


@inlined
def prospects(
    ways: Numbers, link: int, rows: Numbers, row: int, stop: int, size_kb: float, age_s: float
) -> tuple[float, float]:
    """Return EB of a destination by one route (eq. 3), and the highest probability of its subscribers."""
    destination = int(rows[row, DESTINATION])
    earning, hope = 0.0, 0.0
    if ways[OPEN, link, destination] != 0.0:
        arrival_s = age_s + journey_s(ways, link, destination, size_kb)
        spread_s = size_kb * ways[S_PER_KB_SD, link, destination]
        for each in range(row, stop):
            success = success_probability(rows[each, BOUND_S] - arrival_s, spread_s)
            earning += success * rows[each, PRICE]
            hope = max(hope, success)
    return earning, hope


@inlined
def earliest_way(ways: Numbers, link: int, destination: int, size_kb: float, until_free_s: Numbers) -> int:
    """Return the link that brings a message to a destination first, waits included; on a tie, this one."""
    earliest = link
    earliest_s = journey_s(ways, link, destination, size_kb) + ways[WAIT_S, link, destination]
    for other in range(ways.shape[1]):
        if ways[OPEN, other, destination] != 0.0:
            arrival_s = until_free_s[other] + ways[WAIT_S, other, destination]
            arrival_s += journey_s(ways, other, destination, size_kb)
            if arrival_s < earliest_s:
                earliest, earliest_s = other, arrival_s
    return earliest


@inlined
def better_by(
    ways: Numbers,
    link: int,
    other: int,
    rows: Numbers,
    row: int,
    stop: int,
    size_kb: float,
    age_s: float,
    start_s: float,
    share_of_best: float,
    hopeless_at: float,
) -> bool:
    """Return whether another link, from its start on, earns enough more that the destination is left to it.

    A link without hope would not take the message, so it is not waited for.
    """
    destination = int(rows[row, DESTINATION])
    waited_s = age_s + ways[WAIT_S, link, destination]
    here = prospects(ways, link, rows, row, stop, size_kb, waited_s)[0]
    prices = 0.0
    for each in range(row, stop):
        prices += rows[each, PRICE]
    # no route earns more than the sum of all prices, so the search can often be skipped
    if here >= share_of_best * prices:
        return False
    waited_s = start_s + ways[WAIT_S, other, destination]
    there, hope = prospects(ways, other, rows, row, stop, size_kb, waited_s)
    if here >= share_of_best * there:
        return False
    # hope counts without the waits, and is higher then
    return hope > hopeless_at or prospects(ways, other, rows, row, stop, size_kb, start_s)[1] > hopeless_at


@kernel
def hope_elsewhere(
    ways: Numbers,
    link: int,
    rows: Numbers,
    row: int,
    stop: int,
    size_kb: float,
    age_s: float,
    until_free_s: Numbers,
) -> float:
    """Return the highest probability of any subscriber of a destination by another link, once it is free."""
    best = 0.0
    for other in range(ways.shape[1]):
        if other != link:
            start_s = age_s + until_free_s[other]
            best = max(best, prospects(ways, other, rows, row, stop, size_kb, start_s)[1])
    return best


@kernel
def is_reachable(ways: Numbers, destination: int) -> bool:
    """Return whether any route to a destination is open."""
    open_ways = 0.0
    for link in range(ways.shape[1]):
        open_ways += ways[OPEN, link, destination]
    return open_ways > 0.0


@inlined
def judge(
    ways: Numbers,
    link: int,
    rows: Numbers,
    row: int,
    stop: int,
    size_kb: float,
    age_s: float,
    until_free_s: Numbers,
    share_of_best: float,
    hopeless_at: float,
) -> tuple[float, float]:
    """Return the verdict on one destination, and its benefit by this link."""
    earning, hope = prospects(ways, link, rows, row, stop, size_kb, age_s)
    if hope <= hopeless_at:
        if not is_reachable(ways, int(rows[row, DESTINATION])):
            return STAYS, earning  # a route may come back before the bound passes
        elsewhere = hope_elsewhere(ways, link, rows, row, stop, size_kb, age_s, until_free_s)
        return (STAYS if elsewhere > hopeless_at else HOPELESS), earning
    other = earliest_way(ways, link, int(rows[row, DESTINATION]), size_kb, until_free_s)
    start_s = age_s + until_free_s[other]
    if other != link and better_by(
        ways, link, other, rows, row, stop, size_kb, age_s, start_s, share_of_best, hopeless_at
    ):
        return STAYS, earning
    return GOES, earning


@kernel
def appraise_any_way(
    now_s: float,
    link: int,
    slot_count: int,
    slots: Numbers,
    rows: Numbers,
    ways: Numbers,
    free_at_s: Numbers,
    contention: float,
    postponed_s: float,
    hopeless_at: float,
    results: Numbers,
) -> tuple[int, int]:
    """For each message, appraise the destinations that this link serves about as well as any other link.

    A destination is hopeless if no subscriber there has a probability above `hopeless_at` by any route.
    """
    found, hopeless = 0, 0
    share_of_best = 1.0 - contention
    until_free_s = np.maximum(free_at_s - now_s, 0.0)
    for slot in range(slot_count):
        row = int(slots[slot, FIRST])
        end = row + int(slots[slot, ROWS])
        size_kb, age_s = slots[slot, SIZE_KB], now_s - slots[slot, BORN_S]
        benefit, postponed, any_goes, any_hopeless = 0.0, 0.0, False, False
        while row < end:
            stop = destination_end(rows, row, end)
            if rows[row, DESTINATION] >= 0.0:
                verdict, earning = judge(
                    ways,
                    link,
                    rows,
                    row,
                    stop,
                    size_kb,
                    age_s,
                    until_free_s,
                    share_of_best,
                    hopeless_at,
                )
                for each in range(row, stop):
                    rows[each, VERDICT] = verdict
                any_hopeless |= verdict == HOPELESS
                if verdict == GOES:
                    any_goes = True
                    benefit += earning
                    postponed += prospects(ways, link, rows, row, stop, size_kb, age_s + postponed_s)[0]
            row = stop
        if any_hopeless:
            results[HOPELESS_SLOT, hopeless] = slot
            hopeless += 1
        if any_goes:
            results[SLOT, found] = slot
            results[BENEFIT, found] = benefit
            results[POSTPONED, found] = postponed
            found += 1
    return found, hopeless
