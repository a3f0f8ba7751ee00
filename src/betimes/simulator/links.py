"""Transfer times of simulated links: one draw per message and link, whatever the strategy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.model.events import Event
from betimes.model.topology import Link
from betimes.simulator.chance import stream

# a drawn speed is cut off here: 1 ms per KB for the paper's links, less for links that are faster anyway
S_PER_KB_MIN, MEAN_SHARE_MIN = 0.001, 0.02
BLOCK = 1024


class DrawnLink:
    """A link that serves one message at a time, at a speed drawn for each.

    The n-th event of an origin meets the same draw on this link in every run with the same seed, in whatever
    order messages come, so that strategies are compared under the same luck.
    """

    def __init__(self, link: Link, seed: int) -> None:
        self.link = link
        self.journey = 0  # counts transmissions; a link failure makes the current number stale
        self._seed = seed
        self._floor = min(S_PER_KB_MIN, MEAN_SHARE_MIN * link.s_per_kb_mean)
        self._s_per_kb: dict[str, list[float]] = {}  # by origin and number
        self._chance: dict[str, np.random.Generator] = {}

    def transfer_s(self, event: Event) -> float:
        """Return how long this event takes on this link."""
        event_id = event.id
        s_per_kb, number = self._s_per_kb.get(event_id.origin), event_id.number
        if s_per_kb is None or number >= len(s_per_kb):
            s_per_kb = self._draw_on(event_id.origin, number)
        return self.link.delay_s + event.size_kb * s_per_kb[number]

    def _draw_on(self, origin: str, number: int) -> list[float]:
        """Return the speeds drawn for an origin's events, up to this number at least."""
        link, drawn = self.link, self._s_per_kb.setdefault(origin, [])
        if origin not in self._chance:
            self._chance[origin] = stream(self._seed, "links", link.name, origin)
        while number >= len(drawn):
            block: NDArray[np.float64] = self._chance[origin].standard_normal(BLOCK)
            s_per_kb = np.maximum(link.s_per_kb_mean + link.s_per_kb_sd * block, self._floor)
            drawn.extend(s_per_kb.tolist())
        return drawn
