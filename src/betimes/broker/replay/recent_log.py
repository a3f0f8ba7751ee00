"""Where is quickly found what somebody missed of the last messages?

Who comes back asks for what was published in the last seconds, and many who come back ask for the same
seconds. So the last messages are also held in the order in which they came, in blocks. What is further back
is looked for message by message, in the buffer itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from betimes.broker.replay.blocks import Block, Selection
from betimes.model.filters import Filter
from betimes.model.positions import NOTHING, Have
from betimes.mqtt.packet_batch import Kept
from betimes.mqtt.packet_scan import Flags
from betimes.replay.buffer import KeptRun

BLOCK_MESSAGES, BLOCK_BYTES = 1_024, 1_000_000  # at least one of them, but for the last block
BLOCK_MESSAGES_MIN = 256  # of one that is laid out: what comes next need not be laid out with it again
BLOCKS_MAX = 128


class RecentLog:
    """The last messages of a buffer that overwrites them in the order in which they came."""

    def __init__(self) -> None:
        self._blocks: deque[Block] = deque([Block(0)])
        self._passed: dict[str, int] = {}  # by origin: the highest number that is too far back
        self._origins: dict[str, int] = {}  # the code of each that was asked about

    def add(self, run: KeptRun[Kept]) -> None:
        """Take in what the buffer has just taken in."""
        last = self._blocks[-1]
        is_done = last.is_laid_out and last.count >= BLOCK_MESSAGES_MIN
        if is_done or last.count >= BLOCK_MESSAGES or last.size_bytes >= BLOCK_BYTES:
            last = Block(last.first + last.count)
            self._blocks.append(last)
            if len(self._blocks) > BLOCKS_MAX:
                for origin, number in self._blocks.popleft().ends.items():
                    self._passed[origin] = max(number, self._passed.get(origin, 0))
        last.add(run)

    @property
    def origins(self) -> list[str]:
        """Return what the codes of origins stand for."""
        return list(self._origins)

    def reaches(self, have: Mapping[str, Have]) -> bool:
        """Tell whether all that somebody does not have is here, as far as it came at all."""
        return all(have.get(origin, NOTHING).floor >= passed for origin, passed in self._passed.items())

    def missed(
        self, pattern: str, content_filter: Filter, have: Mapping[str, Have], overwritten: int
    ) -> list[Selection]:
        """Return what somebody wants and does not have, but for so many that are overwritten by now."""
        portions = []
        for block in self._blocks:
            is_had = all(have.get(origin, NOTHING).floor >= end for origin, end in block.ends.items())
            if is_had or block.first + block.count <= overwritten:
                continue
            laid_out = block.laid_out(self._origins)
            floors = np.array([have.get(origin, NOTHING).floor for origin in self._origins] or [0])
            places = laid_out.places(pattern, content_filter, floors, overwritten - block.first)
            portion = Selection(laid_out, places)
            if any(each.above for each in have.values()):
                portion = portion.where(self._not_had(portion, have))
            if len(portion):
                portions.append(portion)
        return portions

    def _not_had(self, portion: Selection, have: Mapping[str, Have]) -> Flags:
        """Tell which are not among what somebody has above the floor."""
        names = self.origins
        codes, numbers = portion.origins.tolist(), portion.numbers.tolist()
        pairs = zip(codes, numbers, strict=True)
        return np.array([number not in have.get(names[code], NOTHING) for code, number in pairs], dtype=bool)


def are_in_order(portions: Sequence[Selection]) -> bool:
    """Tell whether none of what was found was overtaken by another of its origin."""
    if not portions:
        return True
    origins = np.concatenate([each.origins for each in portions])
    numbers = np.concatenate([each.numbers for each in portions])
    order = np.argsort(origins, kind="stable")
    origins, numbers = origins[order], numbers[order]
    return bool(((numbers[1:] > numbers[:-1]) | (origins[1:] != origins[:-1])).all())
