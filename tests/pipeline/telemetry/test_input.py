"""Is telemetry read whole, and is a file that is wrong told by its name?"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.records import opened, record, small_world, written

from betimes.model.telemetry import Published, Received
from betimes.pipeline.telemetry.input import all_rows, open_telemetry
from betimes.telemetry.files import KINDS, TelemetryFileError

NO_SPARK: Any = None  # what is wrong with files is told without it


@pytest.mark.spark
def test_every_kind_is_a_frame_with_the_file_of_each_row(spark, tmp_path):
    found = opened(spark, tmp_path, small_world(3))
    assert (found.files, found.rows, found.is_unfinished) == (len(KINDS), 16, False)
    rows = found.frames["published"].collect()
    assert [row.number for row in rows] == [0, 1, 2]
    assert all(row.file.endswith("published/part-00000.parquet") and row.wrong_columns == [] for row in rows)
    assert all_rows(found.frames, ("broker",)).groupBy("kind").count().count() == 6  # nothing was dropped


@pytest.mark.spark
def test_files_of_several_brokers_are_one_table(spark, tmp_path):
    written(tmp_path, [record(Published, broker="a")], label="a")
    written(tmp_path, [record(Published, broker="b/2", origin="b/2")], label="b/2")
    (tmp_path / "_unfinished-c").touch()  # it is about to write
    found = open_telemetry(spark, tmp_path)
    assert sorted(row.broker for row in found.frames["published"].collect()) == ["a", "b/2"]
    assert found.is_unfinished
    assert found.labels == {"a", "b/2", "c"}


@pytest.mark.spark
def test_a_column_of_another_type_is_read_as_the_right_one_row_by_row(spark, tmp_path):
    written(tmp_path, [record(Received, number=number) for number in range(4)])
    path = tmp_path / "received" / "part-00000.parquet"
    table = pq.read_table(path)
    times = pa.array(["1.5", "soon", "3", None])
    numbers = pa.array([1.0, 2.0, 2.5, 4.0])
    sizes = pa.array([[1.0]] * 4)
    table = table.set_column(table.schema.get_field_index("time_s"), "time_s", times)
    table = table.set_column(table.schema.get_field_index("number"), "number", numbers)
    table = table.set_column(table.schema.get_field_index("size_kb"), "size_kb", sizes)
    pq.write_table(table, path)
    rows = open_telemetry(spark, tmp_path).frames["received"].collect()
    assert [(row.time_s, row.number) for row in rows] == [(1.5, 1), (None, 2), (3.0, None), (None, 4)]
    assert [row.wrong_columns for row in rows] == [
        ["size_kb"],
        ["time_s", "size_kb"],
        ["number", "size_kb"],
        ["size_kb"],
    ]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:200]), "is not a whole Parquet file"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (
            lambda path: pq.write_table(pq.read_table(path).drop_columns(["content", "stored"]), path),
            r"lacks column content, stored\nhint: an older version",
        ),
    ],
)
def test_a_file_that_is_wrong_is_named_before_spark_is_asked(tmp_path, damage, said):
    written(tmp_path, small_world(2))
    damage(tmp_path / "published" / "part-00000.parquet")
    with pytest.raises(TelemetryFileError, match=rf"part-00000\.parquet: {said}"):
        open_telemetry(NO_SPARK, tmp_path)


def test_where_there_is_no_telemetry_it_is_said(tmp_path):
    with pytest.raises(TelemetryFileError, match="nowhere: there is no such directory"):
        open_telemetry(NO_SPARK, tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(TelemetryFileError, match="file: is a file, and a directory was expected"):
        open_telemetry(NO_SPARK, tmp_path / "file")
    with pytest.raises(TelemetryFileError, match="holds no telemetry\nhint: betimes broker --telemetry"):
        open_telemetry(NO_SPARK, tmp_path)
    (tmp_path / "received").mkdir()
    with pytest.raises(TelemetryFileError, match="published: no such folder\nhint: an older version"):
        open_telemetry(NO_SPARK, tmp_path)
    written(tmp_path, [])
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(TelemetryFileError, match="holds no telemetry yet"):
        open_telemetry(NO_SPARK, tmp_path)
