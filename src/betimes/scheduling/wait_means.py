"""Running means of the wait from a broker on, by destination, updated by each message."""

from __future__ import annotations

import numpy as np

from betimes.kernels.compile import kernel
from betimes.kernels.types import Integers, Numbers
from betimes.scheduling.appraisal import OPEN, WAIT_S

NEWEST_WEIGHT = 0.025  # of the newest value in a running mean: a memory of about forty messages
VAIN_WEIGHT = NEWEST_WEIGHT / 2  # of the wait of a dropped message: it shows the load, but ended early


def widened(waits_s: Numbers, count: int) -> Numbers:
    """Return waits extended to more destinations; the new ones are 0."""
    missing = count - len(waits_s)
    return np.concatenate([waits_s, np.zeros(missing)]) if missing else waits_s


@kernel
def blend_waits(
    onward_wait_s: Numbers, ways: Numbers, link: int, destinations: Integers, wait_s: float
) -> float:
    """Update the running means of these destinations; return the newest value, averaged over them."""
    total_s = 0.0
    for destination in destinations:
        ahead_s = wait_s + ways[WAIT_S, link, destination]
        onward_wait_s[destination] += (ahead_s - onward_wait_s[destination]) * NEWEST_WEIGHT
        total_s += ahead_s
    return total_s / len(destinations)


@kernel
def note_vain_waits(onward_wait_s: Numbers, ways: Numbers, destinations: Integers, wait_s: float) -> None:
    """Raise the running means if a message waited longer than they state, and was dropped.

    The messages that are sent are the best ones, and wait least: from them alone, a loaded broker would
    look idle.
    """
    for destination in destinations:
        behind_s = np.inf
        for link in range(ways.shape[1]):
            if ways[OPEN, link, destination] != 0.0:
                behind_s = min(behind_s, ways[WAIT_S, link, destination])
        ahead_s = wait_s + behind_s
        if onward_wait_s[destination] < ahead_s < np.inf:
            onward_wait_s[destination] += (ahead_s - onward_wait_s[destination]) * VAIN_WEIGHT
