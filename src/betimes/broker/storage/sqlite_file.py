"""The SQLite file of a store, with a write-ahead log; one broker at a time has it open.

A commit is in the log before `write` returns. With `sync` "normal" SQLite flushes the log to the disk only
now and then: a commit survives the death of the broker at any moment (`kill -9`), but perhaps not that of the
machine. With "full" it survives a loss of power too, at the cost of one flush for each commit.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from betimes.broker.storage.change_tables import Changes, NumberedTable, Table
from betimes.model.errors import BetimesError

APPLICATION_ID = 0x42455449  # "BETI": marks the file as ours
VERSION = 1  # of the tables; an additional table is no new version
WAIT_S = 2.0  # for a broker that is about to end
SPARE_PAGES_MAX = 1024  # free pages kept in the file for what comes next: 4 MB
PAGES_AT_ONCE = 512  # given back to the file system in one call, so that clients do not wait long
LOG_BYTES_KEPT = 64 * 1024 * 1024  # the log is cut back to this after it was larger
WHOLE_COPY = "put back a copy of the file that was whole, or begin with another file"  # a hint
_CELL_ERRORS = (ValueError, OverflowError, MemoryError)  # for a cell that SQLite cannot hold


class StoreError(BetimesError):
    """The file of a store cannot be used, or no longer."""

    def __init__(self, path: str, problem: str, hint: str) -> None:
        super().__init__(f"{path}: {problem}\nhint: {hint}")


class StoreFile:
    """An open file of a store; no other process can open it meanwhile."""

    def __init__(self, path: str, *, sync: str = "normal") -> None:
        self.path = path
        self._statements: dict[Table, tuple[str, str]] = {}
        try:
            # Messages are private: only its owner may read the file.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            problem = f"cannot be opened for writing ({error.strerror})"
            raise StoreError(path, problem, "name a file in a folder that the broker may write to") from None
        self._sqlite = sqlite3.connect(Path(path), timeout=WAIT_S, isolation_level=None)
        try:
            self._claim(sync)
        except sqlite3.Error as error:
            self._sqlite.close()
            raise self._unusable(error) from None
        except StoreError:
            self._sqlite.close()
            raise

    def make(self, tables: Sequence[Table]) -> None:
        """Create the tables that do not exist yet."""
        for table in tables:
            names, keys = ", ".join(table.columns), ", ".join(table.key_columns)
            kind = "" if isinstance(table, NumberedTable) else " WITHOUT ROWID"
            made = (
                f"CREATE TABLE IF NOT EXISTS {table.name} ({table.definitions}, PRIMARY KEY ({keys})){kind}"
            )
            places = ", ".join("?" * len(table.columns))
            put = f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({places})"
            where = " AND ".join(f"{each} = ?" for each in table.key_columns)
            self._statements[table] = (put, f"DELETE FROM {table.name} WHERE {where}")
            try:
                self._sqlite.execute(made)
            except sqlite3.Error as error:
                raise self._unusable(error) from None

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        """Return all rows of a table, in the order of its key."""
        names, order = ", ".join(table.columns), ", ".join(table.key_columns)
        try:
            return self._sqlite.execute(f"SELECT {names} FROM {table.name} ORDER BY {order}").fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def write(self, changes: Sequence[Changes]) -> None:
        """Commit changes: all of them, or none and a StoreError."""
        sqlite = self._sqlite
        try:
            sqlite.execute("BEGIN IMMEDIATE")
            for each in changes:
                put, remove = self._statements[each.table]
                if each.put:
                    sqlite.executemany(put, each.put)
                if each.removed:
                    sqlite.executemany(remove, each.removed)
            sqlite.execute("COMMIT")
        except (sqlite3.Error, *_CELL_ERRORS) as error:
            with contextlib.suppress(sqlite3.Error):
                sqlite.execute("ROLLBACK")
            raise self._unwritable(error) from None

    def tidy(self) -> None:
        """Give some unused pages of the file back to the file system."""
        try:
            (spare,) = self._sqlite.execute("PRAGMA freelist_count").fetchone()
            if spare > SPARE_PAGES_MAX:
                pages = min(spare - SPARE_PAGES_MAX, PAGES_AT_ONCE)
                # As a script: `execute` would stop after the first page.
                self._sqlite.executescript(f"PRAGMA incremental_vacuum({pages})")
        except sqlite3.Error as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        """Merge the log into the file, and release the file."""
        self._sqlite.close()

    def _claim(self, sync: str) -> None:
        """Lock the file for this broker, and check that it is a store."""
        sqlite = self._sqlite
        sqlite.execute("PRAGMA locking_mode = EXCLUSIVE")
        (application_id,) = sqlite.execute("PRAGMA application_id").fetchone()
        (version,) = sqlite.execute("PRAGMA user_version").fetchone()
        (tables,) = sqlite.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application_id != APPLICATION_ID and (application_id or tables):
            hint = "name a file that does not exist yet, or one that a broker made"
            raise StoreError(self.path, "is a database, but not a store of Betimes", hint)
        if version not in (0, VERSION):
            problem = f"is a store of version {version}, and this broker knows version {VERSION}"
            raise StoreError(self.path, problem, "use the release of Betimes that wrote it, or another file")
        sqlite.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only while there are no tables
        sqlite.execute("PRAGMA journal_mode = WAL")
        sqlite.execute(f"PRAGMA synchronous = {'FULL' if sync == 'full' else 'NORMAL'}")
        sqlite.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")
        sqlite.execute("BEGIN IMMEDIATE")
        sqlite.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        sqlite.execute(f"PRAGMA user_version = {VERSION}")
        sqlite.execute("COMMIT")

    def _unusable(self, error: sqlite3.Error) -> StoreError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return StoreError(self.path, "another broker has this file open", "give each broker its own")
        if name == "SQLITE_NOTADB":
            hint = "name a file that does not exist yet, or one that a broker made"
            return StoreError(self.path, "is not a database", hint)
        if name == "SQLITE_FULL":
            return StoreError(self.path, f"cannot be written ({error})", "make room on its disk")
        return StoreError(self.path, f"cannot be read ({error})", WHOLE_COPY)

    def _unwritable(self, error: Exception) -> StoreError:
        hint = "make room or mend the disk, then start the broker again: what was acknowledged is in the file"
        return StoreError(self.path, f"cannot be written any more ({error})", hint)
