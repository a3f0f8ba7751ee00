"""What if the next hop is chosen only when a link falls free? (Ours; 000 binds each message to one path.)

Single shortest paths leave parallel links idle while messages wait for busy ones. Here a link that falls
free looks at every message that it brings nearer to its destination, and takes those destinations which
no other link, counted from when it will be free, would serve clearly better. Every copy carries its
own set of destinations, so nothing is delivered twice; every hop is nearer to them, so nothing circles.
"""

from __future__ import annotations

from betimes.matching.compiled import kernel
from betimes.qos.appraisal import (
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
    SIZE_KB,
    SLOT,
    STAYS,
    VERDICT,
    Array,
    destination_end,
    success_by_way,
)

# How much of what the best other link would earn with a destination may be lost by taking it along on
# this one, when the broker is congested: destinations that travel together cost one transmission, and a
# link in hand is worth something. Where nothing waits, nothing is given away.
LENIENCE = 0.05


@kernel
def expected_earning(
    ways: Array, link: int, rows: Array, row: int, stop: int, size_kb: float, age_s: float
) -> tuple[float, float]:
    """Return EB of one destination by one way, and the best chance of any subscriber there."""
    destination = int(rows[row, DESTINATION])
    earning, hope = 0.0, 0.0
    for each in range(row, stop):
        success = success_by_way(ways, link, destination, size_kb, rows[each, BOUND_S] - age_s)
        earning += success * rows[each, PRICE]
        hope = max(hope, success)
    return earning, hope


@kernel
def best_elsewhere(
    ways: Array,
    link: int,
    rows: Array,
    row: int,
    stop: int,
    size_kb: float,
    age_s: float,
    now_s: float,
    free_at_s: Array,
) -> tuple[float, float]:
    """Return the most that another link could earn with this destination once it is free, and its hope."""
    destination = int(rows[row, DESTINATION])
    earning, hope = 0.0, 0.0
    for other in range(ways.shape[1]):
        if other != link and ways[OPEN, other, destination] != 0.0:
            until_free_s = max(free_at_s[other] - now_s, 0.0)
            there, hope_there = expected_earning(ways, other, rows, row, stop, size_kb, age_s + until_free_s)
            earning, hope = max(earning, there), max(hope, hope_there)
    return earning, hope


@kernel
def appraise_any_way(
    now_s: float,
    link: int,
    slot_count: int,
    slots: Array,
    rows: Array,
    ways: Array,
    free_at_s: Array,
    contention: float,
    postponed_s: float,
    hopeless_at: float,
    results: Array,
) -> tuple[int, int]:
    """Weigh, for each message, the destinations that this link serves about as well as any other would.

    A destination is hopeless when no subscriber there has a chance above `hopeless_at` by any way.
    """
    found, hopeless = 0, 0
    share_of_best = 1.0 - LENIENCE * contention
    for slot in range(slot_count):
        row = int(slots[slot, FIRST])
        end = row + int(slots[slot, ROWS])
        size_kb, age_s = slots[slot, SIZE_KB], now_s - slots[slot, BORN_S]
        benefit, postponed, any_goes, any_hopeless = 0.0, 0.0, False, False
        while row < end:
            stop = destination_end(rows, row, end)
            destination = int(rows[row, DESTINATION])
            if destination < 0:
                row = stop
                continue
            here, hope_here = 0.0, 0.0
            if ways[OPEN, link, destination] != 0.0:
                here, hope_here = expected_earning(ways, link, rows, row, stop, size_kb, age_s)
            there, hope_there = best_elsewhere(ways, link, rows, row, stop, size_kb, age_s, now_s, free_at_s)
            verdict = STAYS
            if max(hope_here, hope_there) <= hopeless_at:
                verdict = HOPELESS
                any_hopeless = True
            elif hope_here > hopeless_at and here >= share_of_best * there:
                verdict = GOES
                any_goes = True
                benefit += here
                later, _ = expected_earning(ways, link, rows, row, stop, size_kb, age_s + postponed_s)
                postponed += later
            rows[row:stop, VERDICT] = verdict
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
