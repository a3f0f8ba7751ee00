"""Numbers that never go back, also over a restart: of models, alarms and what else must not be old."""

from __future__ import annotations

from collections.abc import Mapping

from betimes.broker.storage.change_tables import Table


class NewestNumbers:
    """The highest number seen of each kind; with a table it outlives the broker."""

    def __init__(self, table: Table | None, found: Mapping[str, int]) -> None:
        self._table = table
        self._numbers = dict(found)

    def get(self, kind: str) -> int:
        """Return the highest number so far; 0 if there was none."""
        return self._numbers.get(kind, 0)

    def note(self, kind: str, number: int) -> None:
        """Note a number, if it is higher than all before."""
        if number > self.get(kind):
            self._numbers[kind] = number
            if self._table is not None:
                self._table.put((kind,), (number,))
