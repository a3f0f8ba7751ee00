"""How is a hot loop compiled? Once, kept on disk, without the interpreter's lock.

The only place, with `vectors`, that names numba: its decorators carry no types, so the typed form is
made here. A kernel is compiled for the first types it meets; callers always pass the same array types
(contiguous, writeable), so nothing is compiled twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numpy.typing import NDArray

Parts = tuple[NDArray[Any], ...]
"""Arrays that belong together, as a plain tuple: numba takes it in three times as fast as a named one."""

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., object])


def kernel(function: AnyFunction) -> AnyFunction:
    """Return the function compiled at its first call and cached on disk."""
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(AnyFunction, compiled)


def inlined(function: AnyFunction) -> AnyFunction:
    """Return the function compiled into each kernel that calls it: for small steps of inner loops."""
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)
    return cast(AnyFunction, compiled)
