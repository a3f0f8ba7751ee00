"""Is telemetry summed up as it was written, and a damaged file told?"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from betimes.cli.app import run
from betimes.cli.telemetry import link_speeds, telemetry_facts
from betimes.telemetry.files import KINDS, read_table
from betimes.terminal.exit_codes import MISTAKE

CITY = Path(__file__).resolve().parents[2] / "examples" / "city.toml"


@pytest.fixture
def written(tmp_path, capsys):
    arguments = ["simulate", str(CITY), "--duration", "120", "--telemetry", str(tmp_path / "city"), "--json"]
    assert run(arguments) == 0
    return tmp_path / "city", json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_the_sums_are_those_of_the_run(written, capsys):
    directory, outcome = written
    assert run(["telemetry", str(directory), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    for name in ("wanted", "in_time", "drops"):
        assert facts[name] == outcome[name]
    assert facts["earning"] == pytest.approx(outcome["earning"])
    assert facts["records"]["received"] == outcome["messages"]


def test_link_speeds_are_near_those_of_the_scenario(written):
    links = {each["link"]: each for each in link_speeds(read_table(written[0], "received"))}
    assert links["harbour->centre"]["s_per_kb_mean"] == pytest.approx(0.040, rel=0.1)


@pytest.mark.long
def test_a_person_gets_tables(written, capsys):
    assert run(["telemetry", str(written[0])]) == 0
    assert "harbour->centre" in capsys.readouterr().out


def test_nothing_written_is_summed_up_as_nothing(tmp_path):
    from betimes.telemetry.files import TelemetryWriter

    with TelemetryWriter(tmp_path):
        pass
    facts = telemetry_facts({kind: read_table(tmp_path, kind) for kind in KINDS})
    assert (facts["wanted"], facts["in_time"], facts["drops"], facts["links"]) == (0, 0, {}, [])


@pytest.mark.long
def test_a_corrupt_file_is_one_message_that_names_it(written, capsys):
    part = next((written[0] / "sent").glob("part-*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    assert run(["telemetry", str(written[0])]) == MISTAKE
    said = capsys.readouterr().err
    assert part.name in said
    assert "Traceback" not in said


def test_a_directory_without_telemetry_is_a_mistake(tmp_path, capsys):
    assert run(["telemetry", str(tmp_path)]) == MISTAKE
    assert "no such folder" in capsys.readouterr().err


def test_a_run_that_was_cut_short_is_told(tmp_path, capsys):
    from betimes.telemetry.files import TelemetryWriter

    with pytest.raises(ValueError, match="stop"), TelemetryWriter(tmp_path / "cut"):
        raise ValueError("stop")
    assert run(["telemetry", str(tmp_path / "cut"), "--json"]) == 0
    said = capsys.readouterr()
    assert "was killed" in said.err
    assert json.loads(said.out)["unfinished"] is True


def test_a_directory_that_is_not_there_is_named(tmp_path, capsys):
    assert run(["telemetry", str(tmp_path / "nothere")]) == MISTAKE
    assert "there is no such directory" in capsys.readouterr().err


def test_a_file_in_place_of_a_directory_is_told(tmp_path, capsys):
    (tmp_path / "city.toml").touch()
    assert run(["telemetry", str(tmp_path / "city.toml")]) == MISTAKE
    said = capsys.readouterr().err
    assert "city.toml: is a file, and a directory was expected\nhint: betimes simulate" in said


@pytest.mark.long
def test_what_nobody_wrote_down_is_said_to_be_missing(written, capsys):
    directory, _ = written
    facts = telemetry_facts({kind: read_table(directory, kind) for kind in KINDS})
    assert facts["unaccounted"] == 0
    lost = next((directory / "delivered").glob("part-*.parquet"))
    count = read_table(directory, "delivered").num_rows
    pq.write_table(pq.read_table(lost).slice(0, 0), lost)
    assert run(["telemetry", str(directory)]) == 0
    assert f"{count} messages are unaccounted for" in capsys.readouterr().err
