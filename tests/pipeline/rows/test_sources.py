"""Do tasks get all rows of a table, once, wherever it lies?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from betimes.pipeline.rows.sources import (
    PieceReader,
    RowsError,
    format_of,
    frame_rows,
    open_rows,
    parquet_files,
    parquet_rows,
    read_rows,
)

TABLE = pa.table({"event": np.arange(1000), "x": np.linspace(0, 1, 1000)})


def seen(source, columns=("event",)):
    reader = source.reader

    def task(batches):
        for piece in reader.pieces(batches, columns, 64):
            rows = piece.rows
            first = pa.array([piece.first_row] * rows.num_rows, pa.int64())
            yield pa.RecordBatch.from_arrays(
                [rows.column(0).cast(pa.int64()), first], names=["event", "first"]
            )

    return source.handed_out(columns).mapInArrow(task, "event bigint, first bigint").toArrow().to_pylist()


@pytest.mark.spark
def test_row_groups_are_shared_among_tasks_and_read_there(spark, tmp_path):
    for part in range(3):
        folder = tmp_path / f"broker=b{part}"
        folder.mkdir()
        pq.write_table(TABLE.slice(part * 300, 300), folder / "part.parquet", row_group_size=70)
    (tmp_path / "_SUCCESS").touch()
    source = open_rows(spark, str(tmp_path))
    assert (source.rows, len(source.groups), source.schema.names) == (900, 15, ["event", "x", "broker"])
    rows = seen(source)
    assert sorted(row["event"] for row in rows) == list(range(900))
    assert {row["first"] for row in rows if row["event"] == 300 + 71} == {71}
    sample = read_rows(source, ["x", "broker"], 100)
    assert 50 <= sample.num_rows <= 200
    assert set(sample["broker"].to_pylist()) == {"b0", "b1", "b2"}
    assert read_rows(source, ["event"]).num_rows == 900


@pytest.mark.spark
def test_other_formats_and_frames_come_through_spark(spark, tmp_path):
    pa_csv.write_csv(TABLE, tmp_path / "events.csv")
    (tmp_path / "events.jsonl").write_text("".join(f'{{"event": {n}}}\n' for n in range(1000)))
    frame = spark.createDataFrame(TABLE).repartition(3)
    sources = [open_rows(spark, str(tmp_path / name)) for name in ("events.csv", "events.jsonl")]
    for source in (*sources, frame_rows(frame, "events")):
        assert source.rows == 1000
        assert sorted(row["event"] for row in seen(source)) == list(range(1000))
        assert read_rows(source, ["event"], 100).num_rows < 300


@pytest.mark.spark
def test_columns_may_have_dots_and_capitals(spark, tmp_path):
    (tmp_path / "events.csv").write_text("a.b,Speed,speed,`\n1,2,3,4\n")
    (tmp_path / "events.jsonl").write_text('{"a.b": 1, "Speed": 2, "speed": 3, "`": 4}\n')
    for name in ("events.csv", "events.jsonl"):
        source = open_rows(spark, str(tmp_path / name))
        columns = ["speed", "a.b", "`", "Speed"]
        wanted = [dict(zip(columns, (3, 1, 4, 2), strict=True))]
        assert read_rows(source, columns).to_pylist() == wanted
        (piece,) = source.reader.pieces(iter(source.handed_out(columns).toArrow().to_batches()), columns, 9)
        assert piece.rows.to_pylist() == wanted


@pytest.mark.spark
def test_a_place_that_holds_no_table_is_refused(spark, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"no")
    (tmp_path / "events.xml").write_bytes(b"<no>")
    (tmp_path / "empty").mkdir()
    for place, problem in (
        ("bad.parquet", "is damaged, or no Parquet file"),
        ("empty", "no Parquet files"),
        ("gone.csv", "no such file"),
        ("events.xml", "of which format"),
    ):
        with pytest.raises(RowsError, match=problem):
            open_rows(spark, str(tmp_path / place))
    pq.write_table(TABLE, tmp_path / "one.parquet")
    pq.write_table(TABLE.select(["x"]), tmp_path / "two.parquet")
    for text, problem in (
        ("", "is empty"),
        ('[\n{"event": 1,\n"x": 2}\n]', "holds no JSON\nhint: an object on"),
    ):
        (tmp_path / "events.json").write_text(text)
        with pytest.raises(RowsError, match=problem):
            open_rows(spark, str(tmp_path / "events.json"))
    with pytest.raises(RowsError, match="columns are not those"):
        parquet_rows(spark, [tmp_path / "one.parquet", tmp_path / "two.parquet"], "both")


def test_formats_are_known_by_their_names(tmp_path):
    assert format_of("x/events.ndjson") == "json"
    pa_csv.write_csv(TABLE, tmp_path / "part.csv")
    (tmp_path / ".hidden.jsonl").touch()
    assert format_of(str(tmp_path)) == "csv"
    (tmp_path / "other.jsonl").touch()
    with pytest.raises(RowsError, match=r"part\.csv are not of one format"):
        format_of(str(tmp_path))


def test_a_task_counts_the_rows_of_its_frame():
    reader = PieceReader(in_files=False, name="events")
    pieces = list(reader.pieces(iter(TABLE.to_batches(400)), TABLE.schema.names, 300))
    assert [(piece.first_row, piece.rows.num_rows) for piece in pieces][:3] == [
        (1, 300),
        (301, 100),
        (401, 300),
    ]


def test_hidden_files_are_no_part_of_a_table(tmp_path):
    for name in (".staging/a.parquet", "_temporary/b.parquet", "c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in parquet_files(tmp_path)] == ["c.parquet"]
