"""Which spaces and boxes shall dz-expressions be tried with? Random ones, small enough to list all."""

from __future__ import annotations

from hypothesis import strategies as st

from betimes.matching.dz.expressions import read_dz
from betimes.matching.dz.spaces import Dimension, Space
from betimes.model.filters import Box, Filter, Interval

DEPTH = 6
NAMES = ("a", "b", "c")
ENDS = (-0.5, 0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 0.8, 1.0, 1.7)

plain = st.text("01", max_size=DEPTH).map(read_dz)
wild = st.text("01*", max_size=DEPTH).map(read_dz)
plain_sets = st.lists(plain, max_size=8)
wild_sets = st.lists(wild, max_size=6)

spaces = st.builds(
    lambda names, levels: Space(
        dimensions=tuple(Dimension(attribute=name, low=0.0, high=1.0) for name in names), levels=levels
    ),
    st.sampled_from((NAMES[:1], NAMES[:2], NAMES)),
    st.integers(1, 4),
)
numbers = st.sampled_from(ENDS) | st.floats(-0.2, 1.2)
intervals = st.builds(
    lambda ends, low_inside, high_inside: Interval(min(ends), max(ends), low_inside, high_inside),
    st.tuples(numbers, numbers),
    st.booleans(),
    st.booleans(),
)
boxes = st.dictionaries(st.sampled_from((*NAMES, "other")), intervals, max_size=4).map(
    lambda found: Box(tuple(sorted(found.items())))
)
filters = st.lists(boxes, min_size=1, max_size=3).map(lambda parts: Filter(tuple(parts)))
events = st.dictionaries(
    st.sampled_from((*NAMES, "other")), numbers | st.none() | st.just("text"), max_size=4
)
