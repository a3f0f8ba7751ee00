"""What if the next hop is chosen only when a link falls free? (Ours; 000 binds each message to one path.)

Single shortest paths leave parallel links idle while messages wait for busy ones. Here a link that falls
free looks at every message that it brings nearer to its destination, and takes those destinations which
no other link, counted from when it will be free, would serve clearly better. Every copy carries its
own set of destinations, so nothing is delivered twice; every hop is nearer to them, so nothing circles.

The waits measured downstream decide between ways, and only between ways: what goes first is decided
by benefit alone, and what is hopeless by the journey alone. A mean wait says how crowded a way is, but
not how long a message that is worth more than others would wait there.
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
    WAIT_S,
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
) -> float:
    """Return EB of one destination by one way (eq. 3), for a message of this age."""
    destination = int(rows[row, DESTINATION])
    earning = 0.0
    for each in range(row, stop):
        success = success_by_way(ways, link, destination, size_kb, rows[each, BOUND_S] - age_s)
        earning += success * rows[each, PRICE]
    return earning


@kernel
def hope_by(ways: Array, link: int, rows: Array, row: int, stop: int, size_kb: float, age_s: float) -> float:
    """Return the best chance of any subscriber of one destination by one way; 0 where it is not open."""
    destination = int(rows[row, DESTINATION])
    if ways[OPEN, link, destination] == 0.0:
        return 0.0
    # with the latest bound comes the best chance
    return success_by_way(ways, link, destination, size_kb, rows[row:stop, BOUND_S].max() - age_s)


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
    hopeless_at: float,
) -> float:
    """Return the most that another link with hope could earn with this destination once it is free.

    Waits are counted. A link without hope would not take the destination, so it is none to wait for.
    """
    destination = int(rows[row, DESTINATION])
    most = 0.0
    for other in range(ways.shape[1]):
        start_s = age_s + max(free_at_s[other] - now_s, 0.0)
        if other != link and hope_by(ways, other, rows, row, stop, size_kb, start_s) > hopeless_at:
            waited_s = start_s + ways[WAIT_S, other, destination]
            most = max(most, expected_earning(ways, other, rows, row, stop, size_kb, waited_s))
    return most


@kernel
def hope_elsewhere(
    ways: Array,
    link: int,
    rows: Array,
    row: int,
    stop: int,
    size_kb: float,
    age_s: float,
    now_s: float,
    free_at_s: Array,
) -> float:
    """Return the best chance of any subscriber of one destination by another link, once it is free."""
    best = 0.0
    for other in range(ways.shape[1]):
        if other != link:
            start_s = age_s + max(free_at_s[other] - now_s, 0.0)
            best = max(best, hope_by(ways, other, rows, row, stop, size_kb, start_s))
    return best


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
            verdict = STAYS
            if hope_by(ways, link, rows, row, stop, size_kb, age_s) > hopeless_at:
                waited_s = age_s + ways[WAIT_S, link, destination]
                here = expected_earning(ways, link, rows, row, stop, size_kb, waited_s)
                # no link earns more than all prices together, so often there is nothing to look for
                if here >= share_of_best * rows[
                    row:stop, PRICE
                ].sum() or here >= share_of_best * best_elsewhere(
                    ways, link, rows, row, stop, size_kb, age_s, now_s, free_at_s, hopeless_at
                ):
                    verdict = GOES
                    any_goes = True
                    benefit += expected_earning(ways, link, rows, row, stop, size_kb, age_s)
                    postponed += expected_earning(ways, link, rows, row, stop, size_kb, age_s + postponed_s)
            elif hope_elsewhere(ways, link, rows, row, stop, size_kb, age_s, now_s, free_at_s) <= hopeless_at:
                verdict = HOPELESS
                any_hopeless = True
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
