"""Does the pipeline run from a shell, and say what came out?"""

from __future__ import annotations

import json

import pytest
from tests.pipeline.records import record, small_world, written

from betimes.console.app import MISTAKE, run
from betimes.model.telemetry import Received
from betimes.pipeline.tables import TABLES, tables_page


@pytest.mark.spark
def test_it_prints_pure_json_or_tables(spark, tmp_path, capsys):
    written(tmp_path / "telemetry", [*small_world(4), record(Received, time_s=-1.0)])
    arguments = [
        "pipeline",
        "run",
        "--telemetry",
        str(tmp_path / "telemetry"),
        "--tables",
        str(tmp_path / "tables"),
    ]
    assert run([*arguments, "--json"]) == 0
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert (facts["rows"]["events"], facts["on_time_share"]) == (4, 1.0)
    assert facts["quarantined"] == {"impossible time": 1}
    assert "1 rows are in quarantine" in said.err
    (tmp_path / "telemetry" / "_unfinished").touch()
    assert run(arguments) == 0
    said = capsys.readouterr()
    assert "link_distributions" in said.out
    assert "impossible time" in said.out
    assert "still write there" in said.err


@pytest.mark.spark
def test_a_mistake_is_one_message(spark, tmp_path, capsys):
    arguments = [
        "pipeline",
        "run",
        "--telemetry",
        str(tmp_path / "nowhere"),
        "--tables",
        str(tmp_path / "tables"),
    ]
    assert run(arguments) == MISTAKE
    assert "nowhere: there is no such directory" in capsys.readouterr().err
    assert run([*arguments, "--since", "soon"]) == MISTAKE
    assert "--since = 'soon'" in capsys.readouterr().err


def test_the_tables_are_listed(capsys):
    assert run(["pipeline", "tables", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == list(TABLES)
    assert listed["matches"]["columns"]["born_s"] == "double"
    assert run(["pipeline", "tables", "--markdown"]) == 0
    assert capsys.readouterr().out == tables_page()
    assert run(["pipeline", "tables"]) == 0
    assert "link_distributions" in capsys.readouterr().out
