"""Does a kernel see through the book the very arrays that were noted in it?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.kernels.address_book import address_book, address_of, list_in, table_in
from betimes.kernels.compile import kernel


@kernel
def moved(book):
    table, numbers = table_in(book, 0, np.float64), list_in(book, 1, np.int32)
    numbers[1] = table[1, 2]
    return table.shape[0] * 100 + table.shape[1] * 10 + numbers.shape[0]


def test_a_kernel_reads_and_writes_through_the_book():
    table, numbers = np.arange(6.0).reshape(2, 3), np.zeros(4, np.int32)
    assert moved(address_book((table, numbers))) == 234
    assert numbers.tolist() == [0, 5, 0, 0]


def test_an_empty_array_has_an_address_too():
    assert address_of(np.empty((0, 2)))[1:] == (0, 2)


def test_an_array_with_gaps_is_not_noted():
    with pytest.raises(AssertionError):
        address_of(np.zeros((4, 4))[:, 1])
