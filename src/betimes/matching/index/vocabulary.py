"""Numbers for texts, so that sets and ranges of texts become intervals of numbers.

Equality needs only a stable number per text (`TextCodes`). Ranges need numbers in the order of the
texts (`TextOrder`): the ends of all ranges get labels with room between them, and any other text is
placed just below the next end. Both learn only the texts that filters name, never those of events.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from betimes.kernels.types import Numbers

UNKNOWN_TEXT = -1
"""The number of a text that no filter names: it can still be *outside* a set."""

_LABEL_MAX = 2**52  # integers up to here, and one more or less, are exact as float64
_RUN_SHARE = 1024  # of a gap, used per label by a run of ascending or descending ends


class TextCodes:
    """A number for each text that some filter compares for equality."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.codes)

    def code(self, text: str) -> int:
        """Return the text's number; assign one if it has none."""
        known = self.codes.get(text)
        if known is None:
            known = self._free.pop() if self._free else len(self.codes)
            self.codes[text] = known
        return known

    def keep(self, used: Iterable[int]) -> None:
        """Forget all texts but those with these numbers; the other numbers are used again."""
        used = set(used)
        size = len(self.codes) + len(self._free)
        self.codes = {text: code for text, code in self.codes.items() if code in used}
        self._free = sorted(set(range(size)).difference(self.codes.values()), reverse=True)


class TextOrder:
    """Numbers for the ends of text ranges, at least two apart, in code point order."""

    def __init__(self) -> None:
        self._ends: list[str] = []
        self._labels: list[int] = []
        self._newest = ""  # a run of ends tends to continue beside the last one

    def __len__(self) -> int:
        return len(self._ends)

    def place(self, text: str) -> int:
        """Return the label of this end, or the number just below the next end."""
        position = bisect_left(self._ends, text)
        if position == len(self._ends):
            return self._labels[-1] + 1 if self._labels else 0
        label = self._labels[position]
        return label if self._ends[position] == text else label - 1

    def label(self, text: str) -> int | None:
        """Return the label of an end; assign one if it has none; None if no room is left."""
        position = bisect_left(self._ends, text)
        if position < len(self._ends) and self._ends[position] == text:
            return self._labels[position]
        label = self._free_label(position)
        if label is not None:
            self._ends.insert(position, text)
            self._labels.insert(position, label)
            self._newest = text
        return label

    def respace(self) -> tuple[Numbers, Numbers]:
        """Spread the labels evenly; return the old ones and the new ones, both ascending."""
        old = np.asarray(self._labels, np.float64)
        step = 2 * _LABEL_MAX // (len(self._labels) + 1)
        self._labels = [step * (position + 1) - _LABEL_MAX for position in range(len(self._labels))]
        return old, np.asarray(self._labels, np.float64)

    def keep(self, used: Iterable[int]) -> None:
        """Forget all ends but those with these labels."""
        used = set(used)
        kept = [pair for pair in zip(self._ends, self._labels, strict=True) if pair[1] in used]
        self._ends = [end for end, _ in kept]
        self._labels = [label for _, label in kept]

    def _free_label(self, position: int) -> int | None:
        """Return a label between the neighbours of an end that is inserted at this position."""
        below = self._labels[position - 1] if position else -_LABEL_MAX
        above = self._labels[position] if position < len(self._labels) else _LABEL_MAX
        gap = above - below
        if gap < 4:
            return None
        if position and self._ends[position - 1] == self._newest:
            return below + max(2, gap // _RUN_SHARE)
        if position < len(self._ends) and self._ends[position] == self._newest:
            return above - max(2, gap // _RUN_SHARE)
        return below + gap // 2


def moved_labels(bounds: Numbers, old: Numbers, new: Numbers) -> Numbers:
    """Return (low, high) pairs on a lane after `TextOrder.respace`.

    A low bound is a label or one above it, a high bound a label or one below it; other values (open ends)
    stay.
    """
    moved = bounds.copy()
    for column, side in ((0, "right"), (1, "left")):
        values = bounds[:, column]
        labelled = np.abs(values) <= _LABEL_MAX
        position = np.searchsorted(old, values[labelled], side=side) - (column == 0)  # type: ignore[call-overload]
        moved[labelled, column] = new[position] + (values[labelled] - old[position])
    return moved
