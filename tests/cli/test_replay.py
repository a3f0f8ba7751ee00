"""Does `betimes replay` tell what subscribers would have received?"""

from __future__ import annotations

import json

import pyarrow.csv as pa_csv
import pytest
from tests.pipeline.replay.test_replay import WISHES, tables

from betimes.cli.app import run


@pytest.mark.spark
def test_stored_events_are_replayed_and_summed_up(spark, tmp_path, capsys):
    pa_csv.write_csv(WISHES, tmp_path / "wishes.csv")
    arguments = ["replay", "--tables", str(tables(tmp_path)), "--subscriptions", f"{tmp_path}/wishes.csv"]
    arguments += ["--out", f"{tmp_path}/out"]
    assert run(arguments) == 0
    said = capsys.readouterr()
    assert "subscribers with most matches" in said.out
    assert "quarantine: " in said.err
    assert run([*arguments, "--overwrite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["wanted"] == 12.0


def test_a_place_without_tables_is_refused_before_spark_starts(tmp_path, capsys):
    places = ["--tables", str(tmp_path), "--subscriptions", "wishes.csv", "--out", str(tmp_path / "out")]
    assert run(["replay", *places]) == 2
    assert "there are no tables" in capsys.readouterr().err
