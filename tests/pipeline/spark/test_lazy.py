"""PySpark's names, without PySpark until one is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORTS = "import sys; from betimes.pipeline.telemetry import job; assert 'pyspark' not in sys.modules"


def test_importing_a_job_does_not_import_pyspark() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_names_are_those_of_pyspark() -> None:
    from pyspark.sql import Window, functions

    from betimes.pipeline.spark import lazy

    assert lazy.F.col is functions.col
    assert lazy.Window.partitionBy is Window.partitionBy
    with pytest.raises(AttributeError):
        getattr(lazy.F, "no_such_function")  # noqa: B009 -- for the type checker
