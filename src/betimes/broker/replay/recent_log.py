"""The newest messages in the order in which they came, in blocks.

A client that comes back asks for what was published in the last seconds, and many ask for the same seconds:
blocks answer them fast. What is further back is looked for message by message, in the replay buffer itself.
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
BLOCK_MESSAGES_MIN = (
    256  # of a block with columns: later messages begin a new block, so that its columns stay
)
BLOCKS_MAX = 128


class RecentLog:
    """The last messages of a buffer that overwrites them in the order in which they came."""

    def __init__(self) -> None:
        self._blocks: deque[Block] = deque([Block(0)])
        self._passed: dict[str, int] = {}  # by origin: the highest number that is too far back
        self._origins: dict[str, int] = {}  # the code of each origin

    def add(self, run: KeptRun[Kept]) -> None:
        """Add what the buffer has just kept."""
        last = self._blocks[-1]
        is_done = last.has_columns and last.count >= BLOCK_MESSAGES_MIN
        if is_done or last.count >= BLOCK_MESSAGES or last.size_bytes >= BLOCK_BYTES:
            last = Block(last.first + last.count)
            self._blocks.append(last)
            if len(self._blocks) > BLOCKS_MAX:
                for origin, number in self._blocks.popleft().ends.items():
                    self._passed[origin] = max(number, self._passed.get(origin, 0))
        last.add(run)

    @property
    def origins(self) -> list[str]:
        """Return the origin of each code."""
        return list(self._origins)

    def reaches(self, have: Mapping[str, Have]) -> bool:
        """Tell whether the log reaches back to all that a client does not have."""
        return all(have.get(origin, NOTHING).floor >= passed for origin, passed in self._passed.items())

    def missed(
        self, pattern: str, content_filter: Filter, have: Mapping[str, Have], overwritten: int
    ) -> list[Selection]:
        """Return what a client wants and does not have, but for the first so many, which are overwritten."""
        selections = []
        for block in self._blocks:
            is_had = all(have.get(origin, NOTHING).floor >= end for origin, end in block.ends.items())
            if is_had or block.first + block.count <= overwritten:
                continue
            columns = block.columns(self._origins)
            floors = np.array([have.get(origin, NOTHING).floor for origin in self._origins] or [0])
            places = columns.places(pattern, content_filter, floors, overwritten - block.first)
            selection = Selection(columns, places)
            if any(each.above for each in have.values()):
                selection = selection.where(self._not_had(selection, have))
            if len(selection):
                selections.append(selection)
        return selections

    def _not_had(self, selection: Selection, have: Mapping[str, Have]) -> Flags:
        """Tell which messages are not among those that a client has above the floor."""
        names = self.origins
        codes, numbers = selection.origins.tolist(), selection.numbers.tolist()
        pairs = zip(codes, numbers, strict=True)
        return np.array([number not in have.get(names[code], NOTHING) for code, number in pairs], dtype=bool)


def are_in_order(selections: Sequence[Selection]) -> bool:
    """Tell whether no message was overtaken by another of its origin."""
    if not selections:
        return True
    origins = np.concatenate([each.origins for each in selections])
    numbers = np.concatenate([each.numbers for each in selections])
    order = np.argsort(origins, kind="stable")
    origins, numbers = origins[order], numbers[order]
    return bool(((numbers[1:] > numbers[:-1]) | (origins[1:] != origins[:-1])).all())
