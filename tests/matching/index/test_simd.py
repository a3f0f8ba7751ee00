"""Do vectors of words and cells compute what single ones would?"""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.kernels.compile import kernel
from betimes.matching.index import simd as vectors
from betimes.matching.index.simd import (
    ROWS_BEYOND,
    Words8,
    both8,
    compare_codes,
    count8,
    fetch_line,
    load8,
    lowest_bit,
    nonzero8,
    put_rows8,
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
    return nonzero8(load8(one, 0)), lowest_bit(one[0]), count8(load8(one, 0))


@kernel
def put(words, base, array, place):
    return put_rows8(load8(words, 0), base, array, place)


@kernel
def compare(cell, ends):
    return compare_codes(cell, 0, ends, 0)


@given(words, words)
def test_eight_words_are_combined_bit_by_bit(one, other):
    both, without = np.zeros(8, np.uint64), np.zeros(8, np.uint64)
    first = np.array(one, np.uint64)
    nonzero, lowest, count = combine(first, np.array(other, np.uint64), both, without)
    assert [int(word) for word in both] == [a & b for a, b in zip(one, other, strict=True)]
    assert [int(word) for word in without] == [a & ~b for a, b in zip(one, other, strict=True)]
    assert nonzero == sum(1 << place for place, word in enumerate(one) if word)
    assert lowest == (64 if one[0] == 0 else (one[0] & -one[0]).bit_length() - 1)
    assert count == sum(word.bit_count() for word in one)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@given(words=words)
def test_the_rows_of_set_bits_are_put_in_order(kind, words):
    array = np.zeros(3 + 512 + ROWS_BEYOND, kind)
    expected = [64 * place + bit for place, word in enumerate(words) for bit in range(64) if word >> bit & 1]
    assert put(np.array(words, np.uint64), 1000, array, 3) == len(expected)
    assert array[3 : 3 + len(expected)].tolist() == [1000 + row for row in expected]
    assert not array[:3].any()


@pytest.mark.parametrize("packs", [False, True])
def test_rows_are_put_the_same_whether_the_processor_packs_bytes_or_not(monkeypatch, packs):
    monkeypatch.setattr(vectors, "_PACKS_BYTES", packs)
    fresh = numba.njit(put.py_func)  # type: ignore[attr-defined]
    words, array = np.array([5, 0, 2**64 - 1, 0, 0, 0, 0, 2**63], np.uint64), np.empty(200, np.int32)
    assert fresh(words, 0, array, 0) == 67
    assert array[:67].tolist() == [0, 2, *range(128, 192), 511]


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
