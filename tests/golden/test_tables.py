"""Does the pipeline make of one telemetry the tables that were recorded?"""

from __future__ import annotations

import pytest
from tests.golden.outcomes import TABLES, pipeline_tables
from tests.golden.recording import check


@pytest.mark.spark
def test_tables_are_those_that_were_recorded(spark, tmp_path):
    check(TABLES, pipeline_tables(spark, tmp_path))
