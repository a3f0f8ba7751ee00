"""Does the pipeline run from a shell, and say what came out?"""

from __future__ import annotations

import json

import pytest
from tests.pipeline.records import damaged_inside, record, small_world, written

from betimes.cli.app import run
from betimes.cli.pipeline import show_run
from betimes.model.telemetry import Received
from betimes.pipeline.tables.files import new_tables
from betimes.pipeline.tables.shapes import TABLES, tables_page
from betimes.pipeline.telemetry.run_facts import RunFacts
from betimes.terminal.exit_codes import MISTAKE

FACTS = RunFacts(
    telemetry="live", files=8, is_unfinished=True, over_s=900.0, last_s=1e9, brokers=2, rows={"events": 4},
    quarantined={"duplicate": 1200}, open_subscriptions=1, publishers=1, links=1, wanted=4.0, on_time=3.0,
    earning=6.0, took_s=1.5,
)  # fmt: skip


@pytest.mark.spark
def test_it_prints_pure_json(spark, tmp_path, capsys):
    written(tmp_path / "telemetry", [*small_world(4), record(Received, time_s=-1.0)])
    arguments = ["--telemetry", str(tmp_path / "telemetry"), "--tables", str(tmp_path / "tables")]
    assert run(["pipeline", "run", *arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"]["events"], facts["on_time_share"]) == (4, 1.0)
    assert facts["quarantined"] == {"impossible time": 1}


def test_a_person_gets_tables_and_is_told_what_needs_a_look(tmp_path, capsys):
    show_run(FACTS, tmp_path, as_json=False)
    said = capsys.readouterr()
    assert all(word in said.out for word in ("events", "duplicate", "1,200", "0.75"))
    assert "1,200 bad rows" in said.err
    assert "live: brokers still write there" in said.err


@pytest.mark.long
def test_a_mistake_is_one_message_before_spark_is_started(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("betimes.cli.pipeline.open_spark", pytest.fail)

    def said(telemetry: str, tables: str, *more: str) -> str:
        places = ["--telemetry", str(tmp_path / telemetry), "--tables", str(tmp_path / tables)]
        assert run(["pipeline", "run", *places, *more]) == MISTAKE
        return str(capsys.readouterr().err)

    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    written(tmp_path / "telemetry", small_world(2))
    assert "nowhere: there is no such directory" in said("nowhere", "tables")
    assert "empty: holds no telemetry" in said("empty", "tables")
    assert not (tmp_path / "tables").exists()
    assert "file: cannot be written to" in said("telemetry", "file")
    with new_tables(tmp_path / "tables"):
        assert "tables: another run is writing there" in said("telemetry", "tables")
    assert "--since = 'soon'" in said("nowhere", "tables", "--since", "soon")


@pytest.mark.spark
def test_a_file_that_is_damaged_inside_is_a_mistake_and_no_bug(spark, tmp_path, capsys):
    path = written(tmp_path / "telemetry", small_world(500)) / "published" / "part-00000.parquet"
    damaged_inside(path)
    arguments = ["--telemetry", str(tmp_path / "telemetry"), "--tables", str(tmp_path / "tables")]
    assert run(["pipeline", "run", *arguments]) == MISTAKE
    said = "".join(capsys.readouterr().err.split())  # lines are folded to the width of the terminal
    assert f"{path}:isdamaged" in said
    assert "Traceback" not in said


@pytest.mark.long
def test_the_tables_are_listed(capsys):
    assert run(["pipeline", "tables", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == list(TABLES)
    assert listed["matches"]["columns"]["born_s"] == "double"
    assert run(["pipeline", "tables", "--markdown"]) == 0
    assert capsys.readouterr().out == tables_page()
    assert run(["pipeline", "tables"]) == 0
    assert "link_distributions" in capsys.readouterr().out
