"""Decorators that compile hot loops: once, cached on disk, without the interpreter's lock.

Only this module, `address_book` and `matching.index.simd` import numba: its decorators have no types, so
the typed forms are made here. A kernel is compiled for the types of its first call; callers always pass the
same array types (contiguous, writeable), so nothing is compiled twice.

Workers of a cluster get the package as a zip (`pipeline/spark/session.py`), each application at another
path. Compiled code is cached in the user's cache under the zip's name, which identifies its content. So a
machine compiles once for all workers and applications that have the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import ZipCacheLocator

SHIPPED_AS = "betimes-"  # the start of the zip's name
# cache locators, in the order of numba's attempts
NUMBAS_OWN = ("UserProvided", "InTree", "UserWide", "IPython", "Zip")
# No C code calls a kernel: leaving out the C wrapper saves a tenth of the time to compile.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., object])


class ShippedLocator(ZipCacheLocator):
    """Caches what is compiled from our zip under the zip's name, wherever the zip is."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> ShippedLocator | None:
        """Return the cache place of a function; None if it is not from such a zip."""
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
    """Return the part of a path that begins with our zip; empty if there is none.

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
    """Return the function, compiled at its first call and cached on disk."""
    return cast(AnyFunction, _compiled(function, {}))


def inlined(function: AnyFunction) -> AnyFunction:
    """Return the function inlined into each kernel that calls it: for small steps of inner loops."""
    return cast(AnyFunction, _compiled(function, {"forceinline": True}))


def _compiled(function: Callable[..., object], options: dict[str, Any]) -> Any:
    options = _OPTIONS | options
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # no writable cache (read-only package, no home folder): compile in each process
        return numba.njit(**options)(function)
