"""What does a free link send next? The whole answer in one call, for drivers that send one message at a time.

The same as an appraisal, the best candidate and `take_rows`, one after the other. But to call a kernel takes
longer than what it does, and every array handed over takes time again: so there is one call, with a book.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.address_book import address_book, list_in, table_in
from betimes.kernels.compile import inlined, kernel
from betimes.scheduling.appraisal import (
    GOES,
    HURRIED,
    SLOT,
    WAY_FACTS,
    Appraise,
    Array,
    appraise_benefit,
    appraise_lifetime,
    best_candidate,
)
from betimes.scheduling.late_binding import appraise_any_way
from betimes.scheduling.queue_kernels import take_rows

# lines of the book
SLOTS, ROWS, RESULTS, TAKEN, WAYS, FREE_AT_S = range(6)
# a kernel cannot be handed another at no cost; a number it can
BY_LIFETIME, BY_BENEFIT, BY_ANY_WAY = range(3)
NUMBER_OF: dict[Appraise, int] = {
    appraise_lifetime: BY_LIFETIME,
    appraise_benefit: BY_BENEFIT,
    appraise_any_way: BY_ANY_WAY,
}
# what an appraisal is handed
Setting = tuple[float, int, int, Array, Array, Array, Array, float, float, float, Array]
NOTHING = -1  # goes
NOT_TAKEN = -1  # what is in no hurry may have to let another go first


def choice_book(
    arrays: Sequence[Array | NDArray[np.int64]], ways: Array, free_at_s: Array
) -> NDArray[np.int64]:
    """Return the book of slots, rows, results and room for what is taken, in this order, and of the ways."""
    assert ways.flags.c_contiguous, "a copy would be gone when it is looked at"
    facts, links, destinations = ways.shape
    return address_book((*arrays, ways.reshape(facts * links, destinations), free_at_s))


@inlined
def appraise(appraisal: int, setting: Setting) -> tuple[int, int]:
    """Appraise what waits in one of the ways that there are."""
    if appraisal == BY_LIFETIME:
        return appraise_lifetime(*setting)
    if appraisal == BY_BENEFIT:
        return appraise_benefit(*setting)
    return appraise_any_way(*setting)


@kernel
def take_next(
    book: NDArray[np.int64],
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
    """Appraise what waits, and take out what goes of the candidate that scores highest.

    Not where that one is in no hurry and there are others. Return how many are hopeless, how many are
    candidates, the slot (or NOTHING), how many destinations were taken (or NOT_TAKEN), how many rows stay,
    and the message's age and its wait here.
    """
    slots, rows = table_in(book, SLOTS, np.float64), table_in(book, ROWS, np.float64)
    results, flat = table_in(book, RESULTS, np.float64), table_in(book, WAYS, np.float64)
    ways = flat.reshape((WAY_FACTS, flat.shape[0] // WAY_FACTS, flat.shape[1]))
    free_at_s = list_in(book, FREE_AT_S, np.float64)
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
    taken = table_in(book, TAKEN, np.int64)
    count, left, _, age_s, wait_s = take_rows(slot, slots, rows, GOES, now_s, taken)
    return hopeless, found, slot, count, left, age_s, wait_s
