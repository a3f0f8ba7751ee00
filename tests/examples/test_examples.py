"""Do the examples still print what they are said to print?"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tests.client.blocking.test_ranges import keeping_broker

WITH_SPARK = Path("examples/spark_stream.py")
EXAMPLES = sorted({*Path("examples").glob("*.py")} - {WITH_SPARK})


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_prints_what_stands_beside_it(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out == example.with_suffix(".txt").read_text()


@pytest.mark.spark
@pytest.mark.live
def test_the_example_of_a_stream_prints_what_stands_beside_it(spark, capsys, monkeypatch):
    with keeping_broker() as broker:
        monkeypatch.setattr("sys.argv", [str(WITH_SPARK), f"mqtt://127.0.0.1:{broker.port}"])
        runpy.run_path(str(WITH_SPARK), run_name="__main__")
    assert capsys.readouterr().out == WITH_SPARK.with_suffix(".txt").read_text()


def test_there_are_examples_to_run():
    assert EXAMPLES
