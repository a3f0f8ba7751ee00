"""Which filters and events shall the index be tried with? Random boxes over few attributes and values."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from betimes.model.events import Value
from betimes.model.filters import Box, Constraint, Filter, Flag, Interval, Presence, TextRange, TextSet

NAMES = ("a", "b", "c")
NUMBERS = (
    -math.inf,
    -1e300,
    -1.5,
    -0.0,
    0.0,
    5e-324,
    0.5,
    1.0,
    math.nextafter(1.0, 2.0),
    61.0,
    1e300,
    math.inf,
)
TEXTS = ("", "61", "0.5", "a", "ab", "abc", "b", "nan", "true", "FALSE", "zz", "é", "\U0001f600")

texts = st.sampled_from(TEXTS)
text_sets = st.frozensets(texts, max_size=4)
values: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.sampled_from((*NUMBERS, math.nan)),
    texts,
    st.booleans(),
    st.sampled_from((0, 1, 61, 10**400)),  # JSON has integers past any float
)
events = st.dictionaries(st.sampled_from((*NAMES, "d")), values, max_size=4)

intervals = st.builds(
    Interval,
    st.sampled_from(NUMBERS),
    st.sampled_from((*NUMBERS, math.nan)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
ranges = st.builds(TextRange, texts, st.none() | texts, st.booleans(), st.booleans(), text_sets)
constraints: st.SearchStrategy[Constraint] = st.one_of(
    intervals,
    st.builds(TextSet, text_sets, st.booleans()),
    ranges,
    st.builds(Flag, st.booleans(), st.booleans()),
    st.builds(Presence, st.booleans()),
)
boxes = st.lists(st.tuples(st.sampled_from(NAMES), constraints), max_size=4).map(
    lambda pairs: Box(tuple(sorted(pairs, key=lambda pair: pair[0])))
)
filters = st.lists(boxes, max_size=4).map(lambda parts: Filter(tuple(parts)))


def nested_texts(count: int) -> list[str]:
    """Return texts each of which lies between the two before: no labels have room for many of them."""
    low, high, nested = 0, 2 ** (2 * count), []
    for number in range(count):
        middle = (low + high) // 2
        low, high = (middle, high) if number % 2 else (low, middle)
        nested.append(f"{middle:0{2 * count}b}")
    return nested
