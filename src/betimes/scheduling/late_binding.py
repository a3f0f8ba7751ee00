"""Late binding: the next hop is chosen when a link becomes free. (Ours; 000 binds a message to one path.)

Single shortest paths leave parallel links idle while messages wait for busy ones. With late binding, a free
link examines every message that it brings nearer to its destination. If nothing waits, the link takes those
destinations that no earlier route would serve better. The more messages wait, the worse the link may be
than the best route, because destinations that travel together cost one transmission. Every copy carries its
own set of destinations, so nothing is delivered twice. Every hop is nearer to the destinations, so no
message circles.

The waits measured downstream decide between routes, and only between routes: the order of messages depends
on the benefit alone, and hopelessness on the journey alone. A mean wait shows the load of a route, but not
the wait of a message that is worth more than others.
"""

from __future__ import annotations

import numpy as np

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Numbers
from betimes.scheduling.appraisal import (
    BENEFIT,
    BORN_S,
    BOUND_S,
    DESTINATION,
    FIRST,
    GOES,
    HOPELESS,
    HOPELESS_SLOT,
    OPEN,
    POSTPONED,
    PRICE,
    ROWS,
    S_PER_KB_SD,
    SIZE_KB,
    SLOT,
    STAYS,
    VERDICT,
    WAIT_S,
    destination_end,
    journey_s,
)
from betimes.scheduling.success import success_probability


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
