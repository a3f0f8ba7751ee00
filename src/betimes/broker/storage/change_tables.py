"""Which rows are to be written with the next commit?

Sans-I/O: a table gathers what changed since the last commit, by key, so that what changed twice is written
once. Whoever has rows of a new kind to keep gives the store one more table; it is made, read and committed
together with all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Cell = str | int | float | bytes | None
Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What one commit does to one table: whole rows, which replace those with the same key; keys that go."""

    table: Table
    put: Sequence[Row]
    removed: Sequence[Row]


class Table:
    """Rows by key; columns are written as SQL has them, those of the key first."""

    def __init__(self, name: str, *, key: Sequence[str], values: Sequence[str], changed: set[Table]) -> None:
        self.name = name
        self.key_columns = tuple(key)
        self.columns = (*key, *values)
        self._everywhere = changed  # all tables with changes
        self._rows: dict[Row, Row | None] = {}  # by key; None: it goes

    def put(self, key: Row, values: Row) -> None:
        """Have a row, whatever stood there before."""
        self._rows[key] = key + values
        self._everywhere.add(self)

    def remove(self, key: Row) -> None:
        """Have no such row."""
        self._rows[key] = None
        self._everywhere.add(self)

    def take(self) -> Changes:
        """Return what changed since the last time, and begin anew."""
        rows, self._rows = self._rows, {}
        self._everywhere.discard(self)
        put = [row for row in rows.values() if row is not None]
        gone = [key for key, row in rows.items() if row is None] if len(put) < len(rows) else []
        return Changes(table=self, put=put, removed=gone)


class NumberedTable(Table):
    """Rows that get a number each, in the order in which they come; the first column is that number."""

    def __init__(self, name: str, *, values: Sequence[str], changed: set[Table]) -> None:
        super().__init__(name, key=("number INTEGER",), values=values, changed=changed)
        self._next = 1
        self._next_committed = 1  # from here on, no row was written yet

    def start_after(self, number: int) -> None:
        """Give only numbers above this one: those up to it are taken."""
        self._next = self._next_committed = max(self._next, number + 1)

    def add(self, values: Row) -> int:
        """Have one more row, and return its number."""
        number = self._next
        self._next += 1
        self.put((number,), values)
        return number

    def remove(self, key: Row) -> None:
        """Have no such row; what was never written need not be removed there."""
        number = key[0]
        assert isinstance(number, int), "rows are numbered"
        if number < self._next_committed:
            super().remove(key)
        else:
            self._rows.pop(key, None)

    def take(self) -> Changes:
        """Return what changed since the last time, and begin anew."""
        self._next_committed = self._next
        return super().take()
