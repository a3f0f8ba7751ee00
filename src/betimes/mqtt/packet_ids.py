"""Packet identifiers [2.2.1], given in turn, so that a late answer does not meet a new packet."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

PACKET_ID_MAX: Final = 65_535


class PacketIds:
    """The packet identifiers of one session: 1 to 65,535, then from the start."""

    __slots__ = ("_last",)

    def __init__(self, last: int = 0) -> None:
        self._last = last

    def next_free(self, in_use: Container[int], also: Container[int] = ()) -> int:
        """Return the next identifier that is in neither of these; one must be free.

        O(1) while few are in use: it skips each identifier in use that follows the last one.
        """
        found = self._last % PACKET_ID_MAX + 1
        if found in in_use or found in also:
            found = self._search(found, in_use, also)
        self._last = found
        return found

    @staticmethod
    def _search(found: int, in_use: Container[int], also: Container[int]) -> int:
        for _ in range(PACKET_ID_MAX):
            found = found % PACKET_ID_MAX + 1
            if found not in in_use and found not in also:
                return found
        raise AssertionError("all packet identifiers are in use; the caller limits what is in flight")
