"""Have a sweep's columns the types their values have, and are files whole?"""

from __future__ import annotations

import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from betimes.model.errors import BetimesError
from betimes.pipeline.tables.parquet import column_table, ready_to_write, typed_column, write_table


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, None], pa.bool_()),
        ([1, None, 2], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([2**70], pa.float64()),
        (["a", None], pa.string()),
        ([None], pa.string()),
        ([[1], {"a": 2}], pa.string()),
        ([1, "a"], pa.string()),
        ([True, 1], pa.string()),
    ],
)
def test_a_column_has_the_narrowest_type_that_holds_it(values, expected):
    column = typed_column(values)
    assert column.type == expected
    assert column.null_count == values.count(None)


def test_a_table_has_the_union_of_its_rows_columns():
    table = column_table([{"a": 1}, {"b": "x"}], first=("z",))
    assert table.column_names == ["z", "a", "b"]
    assert table.to_pylist() == [{"z": None, "a": 1, "b": None}, {"z": None, "a": None, "b": "x"}]


def test_a_written_table_is_read_back_and_nothing_else_is_left(tmp_path):
    table = column_table([{"a": 1}])
    write_table(table, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet") == table
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_a_place_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BetimesError, match=r"cannot be written to .*\nhint: name another"):
            ready_to_write(place, overwrite=False)


def test_a_directory_is_made_with_the_first_table(tmp_path):
    place = tmp_path / "new" / "sweep"
    ready_to_write(place, overwrite=False)
    assert not list(tmp_path.iterdir())
    write_table(column_table([{"a": 1}]), place / "t.parquet")
    assert [path.name for path in place.iterdir()] == ["t.parquet"]


def test_a_place_that_takes_no_files_is_refused_before_the_work(tmp_path, monkeypatch):
    def refuse(**_given):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(BetimesError, match="Read-only"):
        ready_to_write(tmp_path, overwrite=True)


def test_a_table_that_cannot_be_written_is_told_by_its_path(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BetimesError, match=r"results\.parquet: cannot be written"):
        write_table(column_table([{"a": 1}]), tmp_path / "file" / "results.parquet")
