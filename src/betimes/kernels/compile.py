"""How is a hot loop compiled? Once, kept on disk, without the interpreter's lock.

The only place, with `vectors` and `book`, that names numba: its decorators carry no types, so the typed
form is made here. A kernel is compiled for the first types it meets; callers always pass the same array types
(contiguous, writeable), so nothing is compiled twice.

Workers of a cluster get the package as a zip (`pipeline/spark/shipping.py`), each application in another
place. What they compile is kept in the user's cache under the zip's name, which tells its content, so that a
machine compiles once for all workers and applications that have the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import ZipCacheLocator

SHIPPED_AS = "betimes-"  # how the name of the zip begins
NUMBAS_OWN = ("UserProvided", "InTree", "UserWide", "IPython", "Zip")  # places, in the order they are tried
# Nothing calls a kernel from C: leaving out what that would need saves a tenth of the time to compile.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., object])


class ShippedLocator(ZipCacheLocator):
    """Keeps what is compiled from a zip of ours under the zip's name, wherever the zip lies."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> ShippedLocator | None:
        """Return the place for a function; none where it is not from such a zip."""
        if not named_in_zip(file):
            return None
        found = cls(function, file)
        try:
            found.ensure_cache_path()
        except OSError as error:
            raise RuntimeError(f"{found.get_cache_path()}: nothing can be kept there") from error
        return found

    @classmethod
    def get_suitable_cache_subpath(cls, file: str) -> str:
        """Return the folder for a file's functions, below numba's cache of this user."""
        return str(super().get_suitable_cache_subpath(f"/{named_in_zip(file)}"))


def named_in_zip(file: str) -> str:
    """Return the part of a path that begins with our zip; nothing where there is none.

    >>> named_in_zip("/spark/app-7/0/betimes-1f3a.zip/betimes/matching/rows.py")
    'betimes-1f3a.zip/betimes/matching/rows.py'
    >>> named_in_zip("/srv/betimes-0.1/src/betimes/matching/rows.py")
    ''
    """
    parts = file.split("/")
    places = [at for at, part in enumerate(parts) if part.startswith(SHIPPED_AS) and part.endswith(".zip")]
    return "/".join(parts[places[-1] :]) if places else ""


if named_in_zip(__file__):
    usual = numba.config.CACHE_LOCATOR_CLASSES or ",".join(f"{name}CacheLocator" for name in NUMBAS_OWN)
    numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.{ShippedLocator.__name__},{usual}"


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
