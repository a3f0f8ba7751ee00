"""How is a hot loop compiled? Once, kept on disk, without the interpreter's lock.

The only place, with `vectors` and `book`, that names numba: its decorators carry no types, so the typed
form is made here. A kernel is compiled for the first types it meets; callers always pass the same array types
(contiguous, writeable), so nothing is compiled twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

# Nothing calls a kernel from C: leaving out what that would need saves a tenth of the time to compile.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., object])


def kernel(function: AnyFunction) -> AnyFunction:
    """Return the function compiled at its first call and cached on disk."""
    return cast(AnyFunction, _compiled(function, {}))


def inlined(function: AnyFunction) -> AnyFunction:
    """Return the function compiled into each kernel that calls it: for small steps of inner loops."""
    return cast(AnyFunction, _compiled(function, {"forceinline": True}))


def _compiled(function: Callable[..., object], options: dict[str, Any]) -> Any:
    options = _OPTIONS | options
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # nowhere to keep a cache (the package read-only, no home to write to): compile in each process
        return numba.njit(**options)(function)
