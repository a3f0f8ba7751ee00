"""The archive that `make test` writes is the one that sessions read."""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.pipeline.spark.java import archive_file, find_java


@pytest.mark.spark
def test_a_session_has_its_classes_from_the_archive_that_make_had_written(spark):
    archive = archive_file(find_java())
    if not archive.exists():
        pytest.skip("no archive: `make test` has it written")
    java = spark.sparkContext._gateway.proc
    assert str(archive) in Path(f"/proc/{java.pid}/maps").read_text()
