"""The measured speed of a link (000, section 3.2): a running mean and deviation per KB."""

from __future__ import annotations

import math
from dataclasses import replace

from betimes.model.topology import Link

CHANGE_WORTH_TELLING = 0.25  # of the time per kilobyte
MEMORY = 50  # transfers; older ones fade, so that a change of the link shows


class LinkEstimate:
    """A broker's estimate of one of its links: the configured values first, then the measured ones."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._seen = 0
        self._mean = link.s_per_kb_mean
        self._variance = link.s_per_kb_sd**2

    def observe(self, size_kb: float, transfer_s: float) -> None:
        """Learn from one acknowledged transfer. The fixed delay stays as configured."""
        s_per_kb = max(transfer_s - self._link.delay_s, 0.0) / size_kb
        self._seen += 1
        weight = 1.0 / min(self._seen + 1, MEMORY)
        surprise = s_per_kb - self._mean
        self._mean += weight * surprise
        self._variance = (1.0 - weight) * (self._variance + weight * surprise**2)

    def link(self) -> Link:
        """Return the link as it is now estimated."""
        return replace(self._link, s_per_kb_mean=self._mean, s_per_kb_sd=math.sqrt(self._variance))


def has_changed(told: Link | None, known: Link) -> bool:
    """Return whether a link differs so much from its last bulletin that other brokers should know."""
    if told is None:
        return True
    told_s, known_s = (link.s_per_kb_mean + link.delay_s for link in (told, known))
    return not math.isclose(known_s, told_s, rel_tol=CHANGE_WORTH_TELLING)
