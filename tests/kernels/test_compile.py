"""Is what was compiled still the function?"""

from __future__ import annotations

import doctest

from betimes.kernels import compile as compiled
from betimes.kernels.compile import inlined, kernel


@inlined
def twice(number: int) -> int:
    return 2 * number


@kernel
def four_times(number: int) -> int:
    return twice(twice(number))


def test_a_kernel_gives_what_its_source_says():
    assert four_times(3) == 12
    assert four_times.py_func(3) == 12  # type: ignore[attr-defined]


def test_a_kernel_is_compiled_once_per_type():
    four_times(1)
    four_times(2)
    assert len(four_times.signatures) == 1  # type: ignore[attr-defined]


def test_a_path_in_our_zip_is_known_wherever_that_lies():
    assert doctest.testmod(compiled).failed == 0
