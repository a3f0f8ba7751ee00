"""Is CSV read as other programs write it, and are names kept as they are?"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from betimes.pipeline.rows.sources import CsvError, check_headers, csv_frame


def written(path: Path, *rows: list[Any]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.mark.spark
def test_quotes_commas_and_line_breaks_come_through(spark, tmp_path):
    values = ['{"speed": 60, "kind": "car"}', 'he said "x"', "plain, comma", "two\nlines", "ä ' \\ b"]
    path = written(tmp_path / "a.csv", ["event", "content"], *([n, text] for n, text in enumerate(values)))
    rows = csv_frame(spark, str(path), [path]).orderBy("event").collect()
    assert [(row.event, row.content) for row in rows] == list(enumerate(values))


@pytest.mark.spark
def test_names_stay_as_they_are_written_and_times_stay_texts(spark, tmp_path):
    header = ["subscriber", "filter", "kind=", "topic", "speed>=", "when"]
    path = written(tmp_path / "a.csv", header, ["007", "TRUE", 1, 5, 50, "2024-01-01 10:00:00"])
    (row,) = csv_frame(spark, str(path), [path]).collect()
    assert list(row) == ["007", "TRUE", "1", "5", 50, "2024-01-01 10:00:00"]
    plain = written(tmp_path / "b.csv", ["event", "speed"], [7, 1.5], [0, 2], [-3, 4])
    found = csv_frame(spark, str(plain), [plain]).collect()
    assert [tuple(row) for row in found] == [(7, 1.5), (0, 2.0), (-3, 4.0)]


@pytest.mark.spark
@pytest.mark.parametrize("columns", [["a.b"], ["event"], ["event", "a.b", "`"]])
def test_rows_of_another_length_say_nothing(spark, tmp_path, columns):
    path = tmp_path / "a.csv"
    path.write_text('event,a.b,`\n1,2,3\n4,5,6,7\n8,9\n10,,\n"11,12,13\n14,15,16\n')
    quoted = [f"`{name.replace('`', '``')}`" for name in columns]
    found = csv_frame(spark, str(path), [path]).select(*quoted).toArrow().to_pydict()
    wanted = {"event": ["1", None, None, "10", None], "a.b": [2, None, None, None, None]}
    assert found == {name: (wanted | {"`": [3, None, None, None, None]})[name] for name in columns}


def test_files_with_other_columns_are_refused(tmp_path):
    one = written(tmp_path / "a.csv", ["event", "speed", "kind"])
    other = written(tmp_path / "b.csv", ["event", "kind", "speed"])
    empty = written(tmp_path / "c.csv")
    check_headers([one, empty, one])
    check_headers([])
    with pytest.raises(CsvError, match=r"c\.csv: is empty\nhint: the first line names"):
        check_headers([empty])
    with pytest.raises(CsvError, match="has column 'speed' more than once"):
        check_headers([written(tmp_path / "d.csv", ["event", "speed", "speed"])])
    with pytest.raises(CsvError, match=r"b\.csv: its columns are not those of .*a\.csv"):
        check_headers([one, other])
