"""The choice of the next message in one kernel call, for drivers that send one message at a time.

The result equals an appraisal, `best_candidate` and `take_rows` in sequence. But calling a kernel takes
longer than its work, and every array argument adds time. So there is one call, with one address book.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from betimes.kernels.address_book import address_book, list_in, table_in
from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Integers, Numbers
from betimes.scheduling.appraisal import (
    GOES,
    HURRIED,
    SLOT,
    WAY_FACTS,
    Appraise,
    appraise_benefit,
    appraise_lifetime,
    best_candidate,
)
from betimes.scheduling.late_binding import appraise_any_way
from betimes.scheduling.queue_kernels import take_rows

# entries of the address book
SLOTS, ROWS, RESULTS, TAKEN, WAYS, FREE_AT_S = range(6)
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
