"""Is a file that is damaged inside named, and is no other failure blamed on files?"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkRuntimeError
from tests.pipeline.records import damaged_inside, small_world, written

from betimes.pipeline.tables.files import NAMED_MAX, damage_in, damaged_parts, naming_damaged_files
from betimes.pipeline.telemetry.job import run_pipeline
from betimes.telemetry.files import KINDS, TelemetryFileError, part_facts

EVENTS = 500


@pytest.mark.long
def test_a_file_is_whole_or_damaged_or_gone(tmp_path):
    path = written(tmp_path, small_world(EVENTS)) / "published" / "part-00000.parquet"
    assert damage_in(path) == ""
    damaged_inside(path)
    assert part_facts(path)[1] == EVENTS  # its end does not tell
    assert damage_in(path).startswith("is damaged (")
    path.write_bytes(b"junk")
    assert damage_in(path).startswith("is damaged (")
    path.unlink()
    assert damage_in(path) == ""


def test_a_text_that_is_none_is_damage(tmp_path):
    texts = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    pq.write_table(pa.table({"text": texts}), tmp_path / "t.parquet")
    assert "UTF8" in damage_in(tmp_path / "t.parquet")


def fail_over(directory: Path) -> None:
    with naming_damaged_files(directory):
        raise PySparkRuntimeError("a stage failed")


def test_where_all_files_are_whole_the_failure_stays_what_it_was(tmp_path):
    written(tmp_path, small_world(2))
    assert damaged_parts(tmp_path) == {}
    with pytest.raises(PySparkRuntimeError, match="a stage failed"):
        fail_over(tmp_path)


def test_a_failure_that_is_not_of_spark_is_left_alone(tmp_path):
    path = written(tmp_path, small_world(2)) / "published" / "part-00000.parquet"
    path.write_bytes(b"junk")
    with pytest.raises(ZeroDivisionError), naming_damaged_files(tmp_path):
        raise ZeroDivisionError


def test_of_many_damaged_files_some_are_named_and_the_rest_counted(tmp_path):
    written(tmp_path, small_world(2))
    paths = sorted(tmp_path.rglob("*.parquet"))
    for path in paths:
        path.write_bytes(b"junk")
    with pytest.raises(TelemetryFileError, match=f"and {len(paths) - NAMED_MAX - 1} more") as caught:
        fail_over(tmp_path)
    assert len(paths) == len(KINDS)
    assert str(caught.value).count(".parquet") == NAMED_MAX + 1


@pytest.mark.spark
def test_a_run_over_a_damaged_file_names_it_and_leaves_no_tables(spark, tmp_path):
    path = written(tmp_path / "telemetry", small_world(EVENTS)) / "published" / "part-00000.parquet"
    damaged_inside(path)
    with pytest.raises(TelemetryFileError, match=r"published/part-00000\.parquet: is damaged") as caught:
        run_pipeline(spark, tmp_path / "telemetry", tmp_path / "tables")
    assert caught.value.path == str(path)
    assert not (tmp_path / "tables" / "current").exists()
