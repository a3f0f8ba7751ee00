"""How long does a message take on a link? One draw per message and link, whatever the strategy."""

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

    The n-th event of an origin meets the same draw on this link in every run with the same seed, in
    whatever order messages come, so that strategies are compared under the same luck.
    """

    def __init__(self, link: Link, seed: int) -> None:
        self.link = link
        self.journey = 0  # counts what was sent; a lost link makes the number under way stale
        self._seed = seed
        self._floor = min(S_PER_KB_MIN, MEAN_SHARE_MIN * link.s_per_kb_mean)
        self._draws: dict[str, list[float]] = {}
        self._chance: dict[str, np.random.Generator] = {}

    def transfer_s(self, event: Event) -> float:
        """Return how long this event takes on this link."""
        link, number = self.link, event.id.number
        draws = self._draws.get(event.id.origin)
        if draws is None or number >= len(draws):
            draws = self._draw_on(event.id.origin, number)
        s_per_kb = link.s_per_kb_mean + link.s_per_kb_sd * draws[number]
        return link.delay_s + event.size_kb * max(s_per_kb, self._floor)

    def _draw_on(self, origin: str, number: int) -> list[float]:
        """Return the draws for an origin's events, up to this number at least."""
        draws = self._draws.setdefault(origin, [])
        if origin not in self._chance:
            self._chance[origin] = stream(self._seed, "links", self.link.name, origin)
        while number >= len(draws):
            block: NDArray[np.float64] = self._chance[origin].standard_normal(BLOCK)
            draws.extend(block.tolist())
        return draws
