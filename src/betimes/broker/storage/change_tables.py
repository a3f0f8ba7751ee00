"""Tables that collect the rows to be written with the next commit.

Sans-I/O: a table collects the changes since the last commit, by key, so a row that changed twice is written
once. New kinds of rows need one more table in the store, which is created, read and committed together with
all others. Each change is O(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Cell = str | int | float | bytes | None
Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of one table in one commit: rows to insert or replace, and keys to delete."""

    table: Table
    put: Sequence[Row]
    removed: Sequence[Row]


class Table:
    """Rows by key; columns are SQL column definitions with commas between, those of the key first."""

    def __init__(self, name: str, *, key: str, values: str = "", changed: set[Table]) -> None:
        self.name = name
        self.definitions = f"{key}, {values}" if values else key
        self.columns = [each.split()[0] for each in self.definitions.split(",")]
        self.key_columns = self.columns[: key.count(",") + 1]
        self._everywhere = changed  # all tables with changes
        self._rows: dict[Row, Row | None] = {}  # by key; None: delete

    def put(self, key: Row, values: Row) -> None:
        """Insert or replace a row."""
        self._rows[key] = key + values
        self._everywhere.add(self)

    def remove(self, key: Row) -> None:
        """Delete a row, if there is one of this key."""
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
    """Rows with ascending numbers; the first column is the number."""

    def __init__(self, name: str, *, values: str, changed: set[Table]) -> None:
        super().__init__(name, key="number INTEGER", values=values, changed=changed)
        self._next = 1
        self._next_committed = 1  # from here on, no row was written yet

    @property
    def next_number(self) -> int:
        """Return the number of the next row."""
        return self._next

    def start_after(self, number: int) -> None:
        """Give only numbers above this one: those up to it are in use."""
        self._next = self._next_committed = max(self._next, number + 1)

    def add(self, values: Row) -> int:
        """Insert a row, and return its number."""
        number = self._next
        self._next += 1
        self.put((number,), values)
        return number

    def remove(self, key: Row) -> None:
        """Delete a row; one that was never committed is just forgotten."""
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
