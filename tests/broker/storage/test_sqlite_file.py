"""Does the file hold what was committed, for one broker at a time, and say clearly when it cannot be used?"""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from betimes.broker.storage import sqlite_file as store_file
from betimes.broker.storage.change_tables import NumberedTable, Table
from betimes.broker.storage.sqlite_file import StoreError, StoreFile


def some_tables() -> tuple[Table, NumberedTable]:
    changed: set[Table] = set()
    pairs = Table("pairs", key="a TEXT, b INTEGER", values="c REAL", changed=changed)
    return pairs, NumberedTable("things", values="data BLOB", changed=changed)


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "betimes.db")


def test_what_was_committed_is_there_again_in_the_order_of_its_key(path):
    pairs, things = some_tables()
    file = StoreFile(path)
    file.make([pairs, things])
    pairs.put(("z", 1), (float("inf"),))
    pairs.put(("a", 2), (None,))
    gone, stays = things.add((b"gone",)), things.add((b"stays",))
    file.write([pairs.take(), things.take()])
    things.remove((gone,))
    file.write([things.take()])
    file.close()
    again = StoreFile(path)
    pairs, things = some_tables()
    again.make([pairs, things])
    assert again.rows(pairs) == [("a", 2, None), ("z", 1, float("inf"))]
    assert again.rows(things) == [(stays, b"stays")]
    again.close()


@pytest.mark.parametrize("cell", [{}, "\ud800", 1 << 64])
def test_a_commit_is_all_or_nothing(cell, path):
    pairs, things = some_tables()
    file = StoreFile(path)
    file.make([pairs, things])
    pairs.put(("a", 1), (1.0,))
    things.put((1,), (cell,))
    with pytest.raises(StoreError):
        file.write([pairs.take(), things.take()])
    pairs.put(("a", 2), (2.0,))
    file.write([pairs.take()])
    file.close()
    again = StoreFile(path)
    again.make([pairs])
    assert again.rows(pairs) == [("a", 2, 2.0)]
    again.close()


def test_what_a_dead_process_committed_is_there(path):
    code = f"""
import os, signal
from betimes.broker.storage.sqlite_file import StoreFile
from betimes.broker.storage.change_tables import Table
table = Table("pairs", key="a TEXT", values="", changed=set())
file = StoreFile({path!r})
file.make([table])
table.put(("x",), ())
file.write([table.take()])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    table = Table("pairs", key="a TEXT", values="", changed=set())
    file = StoreFile(path)
    file.make([table])
    assert file.rows(table) == [("x",)]
    file.close()


def test_only_the_owner_may_read_it(path):
    StoreFile(path).close()
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_two_brokers_cannot_have_one_file(path, monkeypatch):
    monkeypatch.setattr(store_file, "WAIT_S", 0.1)
    file = StoreFile(path)
    with pytest.raises(StoreError, match="another broker has this file open"):
        StoreFile(path)
    file.close()
    StoreFile(path).close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(path):
    text = b"these are my notes, not a database" * 100
    Path(path).write_bytes(text)
    with pytest.raises(StoreError, match=r"betimes\.db: is not a database\nhint: "):
        StoreFile(path)
    assert Path(path).read_bytes() == text


def test_a_full_disk_is_told_as_one(path):
    StoreFile(path).close()
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorname = "SQLITE_FULL"
    with pytest.raises(StoreError, match=r"cannot be written .*\nhint: make room"):
        raise StoreFile(path)._unusable(error)


def test_another_program_s_database_is_refused_and_left_alone(path):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE mine (a)")
    other.close()
    with pytest.raises(StoreError, match="not a store of Betimes"):
        StoreFile(path)
    other = sqlite3.connect(path)
    assert other.execute("PRAGMA application_id").fetchone() == (0,)
    assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    other.close()


def test_a_store_of_another_version_is_refused(path):
    StoreFile(path).close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 9")
    other.close()
    with pytest.raises(StoreError, match="a store of version 9, and this broker knows version 1"):
        StoreFile(path)


def test_a_damaged_file_is_refused(path):
    pairs, things = some_tables()
    file = StoreFile(path)
    file.make([pairs, things])
    for number in range(1000):
        pairs.put((str(number), number), (0.0,))
    file.write([pairs.take()])
    file.close()
    with Path(path).open("r+b") as damaged:
        damaged.seek(4096)
        damaged.write(os.urandom(8192))
    with pytest.raises(StoreError, match="cannot be read"):
        read_all(path)


def read_all(path: str) -> None:
    file = StoreFile(path)
    try:
        tables = some_tables()
        file.make(tables)
        for table in tables:
            file.rows(table)
    finally:
        file.close()


@pytest.mark.parametrize("place", ["missing/betimes.db", "."])
def test_a_file_that_cannot_be_made_is_refused(place, tmp_path):
    with pytest.raises(StoreError, match="cannot be opened for writing"):
        StoreFile(str(tmp_path / place))


def test_a_full_disk_is_told_and_what_was_committed_before_stays(path):
    _, things = some_tables()
    file = StoreFile(path)
    file.make([things])
    things.add((b"first",))
    file.write([things.take()])
    (pages,) = file._sqlite.execute("PRAGMA page_count").fetchone()
    file._sqlite.execute(f"PRAGMA max_page_count = {pages}")  # as if the disk ended here
    things.add((b"x" * 1_000_000,))
    with pytest.raises(StoreError, match=r"cannot be written any more \(.*full\)\nhint: make room"):
        file.write([things.take()])
    assert [data for _, data in file.rows(things)] == [b"first"]
    file.close()


@pytest.mark.long
def test_room_that_is_not_needed_is_given_back(path):
    _, things = some_tables()
    file = StoreFile(path)
    file.make([things])
    numbers = [things.add((b"x" * 100_000,)) for _ in range(200)]
    file.write([things.take()])
    for number in numbers:
        things.remove((number,))
    file.write([things.take()])
    (before,) = file._sqlite.execute("PRAGMA page_count").fetchone()
    for _ in range(20):
        file.tidy()
    (after,) = file._sqlite.execute("PRAGMA page_count").fetchone()
    assert before > 4800
    assert after < store_file.SPARE_PAGES_MAX + 10
    file.close()


@pytest.mark.parametrize(("sync", "level"), [("normal", 1), ("full", 2)])
def test_it_is_flushed_as_often_as_was_asked_for(sync, level, path):
    file = StoreFile(path, sync=sync)
    assert file._sqlite.execute("PRAGMA synchronous").fetchone() == (level,)
    assert file._sqlite.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    file.close()
