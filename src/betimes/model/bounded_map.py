"""A dictionary of bounded size that forgets its oldest entry first."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Lately(Generic[Key, Value]):
    """The entries noted last, by key."""

    __slots__ = ("_found", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[Key, Value] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._found

    def get(self, key: Key, otherwise: Value) -> Value:
        """Return the value of a key."""
        return self._found.get(key, otherwise)

    def note(self, key: Key, value: Value) -> None:
        """Set the value of a key, as the newest entry."""
        found = self._found
        found.pop(key, None)
        if len(found) >= self._most:
            del found[next(iter(found))]
        found[key] = value

    def forget(self, key: Key) -> None:
        """Remove a key."""
        self._found.pop(key, None)
