"""Topic patterns as texts that must be equal, so that the index can look them up.

A pattern without wildcards must equal the topic. Of one with wildcards, the levels before the first wildcard
must equal as many levels of the topic: `a/b/#` requires that the topic's first two levels are `a/b`. Equality
does not decide about `+`, nor about a wildcard at the beginning, which does not match topics that begin with
`$`: these are checked afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from betimes.kernels.types import Flags, Integers
from betimes.matching.index.event_batch import MISSING_CODE, TextColumn
from betimes.matching.topics import topic_matches

WHOLE_TOPIC = "$topic"  # no attribute: names of attributes do not begin with $
LEVELS_MAX = 8  # levels before the first wildcard that are looked up; more are checked afterwards
_ANSWERS_MAX = 1_000_000


def lane_of(pattern: str) -> tuple[str, str] | None:
    """Return the lane of a pattern and the text it requires there; None where it begins with a wildcard.

    >>> lane_of("a/b"), lane_of("a/b/#"), lane_of("a/+/c"), lane_of("#")
    (('$topic', 'a/b'), ('$topic:2', 'a/b'), ('$topic:1', 'a'), None)
    """
    levels = pattern.split("/")
    wild = next((place for place, level in enumerate(levels) if level in ("+", "#")), None)
    if wild is None:
        return WHOLE_TOPIC, pattern
    kept = min(wild, LEVELS_MAX)
    return (f"{WHOLE_TOPIC}:{kept}", "/".join(levels[:kept])) if kept else None


def is_checked_afterwards(pattern: str) -> bool:
    """Return whether equal texts do not yet decide that a topic matches the pattern."""
    levels = pattern.split("/")
    return "+" in levels or levels[0] == "#" or (levels[-1] == "#" and len(levels) - 1 > LEVELS_MAX)


def pattern_columns(patterns: TextColumn) -> dict[str, TextColumn]:
    """Return the texts that patterns require, as columns named after lanes."""
    lanes = [lane_of(pattern) for pattern in patterns.texts]
    return {
        name: _column([lane[1] if lane and lane[0] == name else None for lane in lanes], patterns)
        for name in dict.fromkeys(lane[0] for lane in lanes if lane is not None)
    }


def topic_columns(topics: TextColumn, names: Sequence[str]) -> dict[str, TextColumn]:
    """Return the topics of events as columns named after these lanes: whole topics, or their first levels."""
    columns: dict[str, TextColumn] = {}
    for name in names:
        kept = None if name == WHOLE_TOPIC else int(name.partition(":")[2])
        texts = [
            "/".join(topic.split("/")[:kept]) if kept is None or topic.count("/") + 1 >= kept else None
            for topic in topics.texts
        ]
        columns[name] = _column(texts, topics)
    return columns


def _column(texts: Sequence[str | None], column: TextColumn) -> TextColumn:
    """Return the column with other texts; None is a missing one."""
    found: dict[str, int] = {}
    codes = [MISSING_CODE if text is None else found.setdefault(text, len(found)) for text in texts]
    spread = np.array([*codes, MISSING_CODE], np.int32)[column.codes]
    return TextColumn(texts=tuple(found), codes=spread)


class PatternCheck:
    """Decides which pairs of patterns and topics match; there are few different pairs, which it caches."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(patterns)
        self._met: dict[tuple[int, str], bool] = {}

    def meets(self, pattern: Integers, topics: Sequence[str], topic: Integers) -> Flags:
        """Return for each pair whether the topic matches; an event without a topic matches only `#`."""
        pairs, place = np.unique(pattern * (len(topics) + 1) + topic, return_inverse=True)
        answers = [
            self._meets(pair // (len(topics) + 1), [*topics, ""][pair % (len(topics) + 1)])
            for pair in pairs.tolist()
        ]
        return np.array(answers, np.bool_)[place]

    def _meets(self, pattern: int, topic: str) -> bool:
        found = self._met.get((pattern, topic))
        if found is None:
            if len(self._met) >= _ANSWERS_MAX:
                self._met.clear()
            found = self._met[pattern, topic] = topic_matches(self._patterns[pattern], topic)
        return found
