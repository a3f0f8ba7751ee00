"""A dictionary of bounded size that forgets its oldest entry first."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedMap(dict[Key, Value]):
    """The entries noted last, by key. Entries are set by `note` only; all else is a dictionary's."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        self._most = most

    def note(self, key: Key, value: Value) -> None:
        """Set the value of a key, as the newest entry."""
        self.pop(key, None)
        if len(self) >= self._most:
            del self[next(iter(self))]
        self[key] = value

    def forget(self, key: Key) -> None:
        """Remove a key, if it is known."""
        self.pop(key, None)
