"""Do the tables say what they hold, and is their page up to date?"""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.pipeline.tables.shapes import TABLES, tables_page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "tables.md"


def test_the_reference_page_is_up_to_date():
    hint = "betimes pipeline tables --markdown > docs/reference/tables.md"
    assert PAGE.read_text() == tables_page(), hint


@pytest.mark.spark
def test_every_table_has_columns_that_spark_reads(spark):
    for table in TABLES.values():
        assert tuple(spark.createDataFrame([], table.ddl).columns) == table.names
        assert len(set(table.names)) == len(table.names)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_is_divided_by_its_last_column(table):
    # Spark reads the column that divides a folder after all others.
    assert table.divided_by in (None, table.names[-1])


def test_every_table_of_the_issue_is_there():
    asked = "events subscriptions transfers waits deliveries drops quarantine matches predictions admissions"
    assert set(asked.split()) < set(TABLES)
