"""Do new tables take the place of old ones whole, or not at all?"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from betimes.pipeline.tables.files import (
    ARROW_TYPES,
    TablesError,
    check_tables_place,
    current_tables,
    new_tables,
    read_arrow,
    read_frame,
    write_frame,
)
from betimes.pipeline.tables.shapes import DROPS, RELIABILITY

ROW = (1.0, 1.0, "a", 1, "p", 0.5, "b", "expired", 2)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_run_that_ends_well_becomes_the_current_one(tmp_path):
    for text in ("first", "second", "third"):
        with new_tables(tmp_path) as folder:
            (folder / "note").write_text(text)
    assert (current_tables(tmp_path) / "note").read_text() == "third"
    assert names(tmp_path / "runs") == ["000002", "000003"]  # the last but one may still be read


def test_a_run_that_fails_leaves_the_old_tables(tmp_path):
    with new_tables(tmp_path) as folder:
        (folder / "note").write_text("old")

    def fail():
        with new_tables(tmp_path) as folder:
            (folder / "note").write_text("new")
            raise ValueError("halfway")

    with pytest.raises(ValueError, match="halfway"):
        fail()
    assert (current_tables(tmp_path) / "note").read_text() == "old"
    assert names(tmp_path / "runs") == ["000001"]


def test_a_full_disk_is_told_with_the_place(tmp_path):
    with (
        pytest.raises(
            TablesError, match=r"cannot be written to \(No space left on device\)\nhint: make room"
        ),
        new_tables(tmp_path),
    ):
        raise RuntimeError("Caused by: java.io.IOException: No space left on device\n\tat java.base")
    assert names(tmp_path / "runs") == []


def test_what_a_killed_run_left_is_cleared_by_the_next(tmp_path):
    with new_tables(tmp_path):
        pass
    (tmp_path / "runs" / "000002").mkdir()
    with new_tables(tmp_path) as folder:
        assert folder.name == "000002"
        assert names(folder) == []


def test_two_runs_do_not_write_to_one_place_at_a_time(tmp_path):
    with new_tables(tmp_path), pytest.raises(TablesError, match="another run"), new_tables(tmp_path):
        pass


def test_a_place_is_checked_before_tables_are_made(tmp_path):
    check_tables_place(tmp_path / "new")
    check_tables_place(tmp_path / "new")  # the lock was let go
    with new_tables(tmp_path / "new"), pytest.raises(TablesError, match="another run is writing there"):
        check_tables_place(tmp_path / "new")
    (tmp_path / "file").write_text("")
    with pytest.raises(TablesError, match=r"file: cannot be written to .*\nhint: name another"):
        check_tables_place(tmp_path / "file")


def test_a_damaged_file_of_a_table_is_named(tmp_path):
    folder = tmp_path / RELIABILITY.name
    folder.mkdir()
    schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in RELIABILITY.columns])
    for number in range(3):
        pq.write_table(schema.empty_table(), folder / f"part-{number}.parquet")
    assert read_arrow(RELIABILITY, tmp_path).num_rows == 0
    for number in (2, 0):  # the first file is read for its columns already, the last one for its rows
        (folder / f"part-{number}.parquet").write_bytes(b"junk" * 100)
        with pytest.raises(TablesError, match=rf"part-{number}\.parquet: is damaged .*\nhint: run betimes"):
            read_arrow(RELIABILITY, tmp_path)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TablesError, match="file: cannot be written to"), new_tables(tmp_path / "file"):
        pass


def test_where_no_tables_are_it_is_said_what_writes_them(tmp_path):
    with pytest.raises(TablesError, match=r"there are no tables\nhint: betimes pipeline run"):
        current_tables(tmp_path)
    with pytest.raises(TablesError, match="drops: there is no such table"):
        read_arrow(DROPS, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("files", [1, 3])
def test_what_is_written_is_read_with_and_without_spark(spark, tmp_path, files):
    rows = [(*ROW[:3], number, *ROW[4:], name) for number, name in enumerate(["007", "a b/c%", "007", "x=y"])]
    write_frame(spark.createDataFrame(rows, DROPS.ddl), DROPS, tmp_path, files)
    assert sorted(map(tuple, read_frame(spark, DROPS, tmp_path).collect())) == sorted(rows)
    found = read_arrow(DROPS, tmp_path)
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == sorted(rows)
    assert read_arrow(DROPS, tmp_path, ["number"]).column_names == ["number"]


@pytest.mark.spark
@pytest.mark.parametrize("table", [DROPS, RELIABILITY])
def test_a_table_without_rows_has_its_columns(spark, tmp_path, table):
    write_frame(spark.createDataFrame([], table.ddl), table, tmp_path)
    assert tuple(read_frame(spark, table, tmp_path).columns) == table.names
    found = read_arrow(table, tmp_path)
    assert (tuple(found.column_names), found.num_rows) == (table.names, 0)


@pytest.mark.spark
def test_a_table_of_another_shape_is_told(spark, tmp_path):
    spark.range(1).write.parquet(str(tmp_path / "reliability"))
    with pytest.raises(TablesError, match="lacks column subscriber"):
        read_arrow(RELIABILITY, tmp_path)
