"""Do vectors of words and cells compute what single ones would?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from betimes.matching.compiled import kernel
from betimes.matching.vectors import (
    Words8,
    bit_count,
    both8,
    compare_cells,
    fetch_line,
    load8,
    lowest_bit,
    nonzero8,
    store8,
    without8,
)

words = st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63]), min_size=8, max_size=8)
cells = st.lists(st.sampled_from([0, 1, 2, 5, 40000, 65534, 65535]), min_size=8, max_size=8)


@kernel
def combine(one, other, both, without):
    fetch_line(one, 0)
    store8(both, 0, both8(load8(one, 0), load8(other, 0)))
    store8(without, 0, without8(load8(one, 0), load8(other, 0)))
    return nonzero8(load8(one, 0)), lowest_bit(one[0]), bit_count(one[0])


@kernel
def compare(cell, ends):
    return compare_cells(cell, 0, ends, 0)


@given(words, words)
def test_eight_words_are_combined_bit_by_bit(one, other):
    both, without = np.zeros(8, np.uint64), np.zeros(8, np.uint64)
    first = np.array(one, np.uint64)
    nonzero, lowest, count = combine(first, np.array(other, np.uint64), both, without)
    assert [int(word) for word in both] == [a & b for a, b in zip(one, other, strict=True)]
    assert [int(word) for word in without] == [a & ~b for a, b in zip(one, other, strict=True)]
    assert nonzero == sum(1 << place for place, word in enumerate(one) if word)
    assert lowest == (64 if one[0] == 0 else (one[0] & -one[0]).bit_length() - 1)
    assert count == one[0].bit_count()


@given(cells, cells, cells)
def test_eight_cells_are_compared_with_their_ends(cell, low, high):
    told = compare(np.array(cell, np.uint16), np.array(low + high, np.uint16))
    triples = list(zip(cell, low, high, strict=True))
    assert told & 0xFF == sum(1 << place for place, (c, a, b) in enumerate(triples) if not a <= c <= b)
    assert told >> 8 == sum(
        1 << place for place, (c, a, b) in enumerate(triples) if c in (a, b) and b != 65535
    )


def test_words_have_a_type_of_their_own():
    assert Words8() == Words8()
