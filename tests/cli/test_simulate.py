"""Does a simulated scenario print what came of it, and a mistake one message?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from betimes.cli.app import run
from betimes.cli.simulate import outcome_facts, simulate, with_duration
from betimes.language.files.scenario_file import read_scenario
from betimes.model.errors import SettingError
from betimes.telemetry.files import read_table
from betimes.terminal.exit_codes import MISTAKE

CITY = Path(__file__).resolve().parents[2] / "examples" / "city.toml"


def said_by(capsys, *arguments):
    assert run(["simulate", str(CITY), "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_the_same_seed_gives_the_same_outcome(capsys):
    first = said_by(capsys, "--seed", "3", "--strategy", "eb")
    assert first == said_by(capsys, "--seed", "3", "--strategy", "eb")
    assert first != said_by(capsys, "--seed", "4", "--strategy", "eb")
    assert 0 < first["delivery_rate"] <= 1
    assert {"earning", "messages", "drops", "subscribers"} <= set(first)


@pytest.mark.long
def test_every_wanted_delivery_is_accounted_for(capsys):
    facts = said_by(capsys)
    assert facts["in_time"] + sum(facts["drops"].values()) == facts["wanted"]
    assert sum(each["in_time"] for each in facts["subscribers"]) == facts["in_time"]


def test_a_table_is_printed_for_a_person(capsys):
    assert run(["simulate", str(CITY), "--duration", "60"]) == 0
    assert "delivery rate" in capsys.readouterr().out


@pytest.mark.long
def test_telemetry_is_written_once(capsys, tmp_path):
    facts = said_by(capsys, "--telemetry", str(tmp_path / "run"))
    assert read_table(tmp_path / "run", "published").num_rows == facts["published"]
    assert read_table(tmp_path / "run", "delivered").num_rows == facts["in_time"]
    assert run(["simulate", str(CITY), "--telemetry", str(tmp_path / "run")]) == MISTAKE
    assert "already holds telemetry" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [["--strategy", "ebb"], ["--seed", "-1"], ["--seed", "x"], ["--duration", "0"], ["--duration", "inf"]],
)
def test_a_wrong_setting_is_one_message(arguments, capsys):
    assert run(["simulate", str(CITY), *arguments]) == MISTAKE
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.long
def test_a_recipe_and_a_seed_are_a_network():
    text = (CITY.parent / "paper.toml").read_text()
    world = with_duration(read_scenario(text, "paper.toml"), 60.0)
    facts = outcome_facts(simulate(world, "fifo", 1, None))
    assert len(facts["subscribers"]) == 160


def test_no_time_at_all_is_refused():
    world = read_scenario(CITY.read_text(), "city.toml")
    with pytest.raises(SettingError, match="more than 0 seconds\nhint: for example 60"):
        with_duration(world, -1.0)


@pytest.mark.long
def test_it_is_told_who_is_guaranteed_what_and_who_is_refused(capsys):
    example = str(CITY.with_name("guarantees.toml"))
    assert run(["simulate", example, "--duration", "5", "--json"]) == 0
    guaranteed, greedy = json.loads(capsys.readouterr().out)["guarantees"]
    assert (guaranteed["subscriber"], guaranteed["accepted"], guaranteed["kb_per_s"]) == (
        "guaranteed",
        True,
        20.0,
    )
    assert (greedy["accepted"], greedy["reason"], greedy["kb_per_s"]) == (False, "no bandwidth", 54.0)
    assert run(["simulate", example, "--duration", "5"]) == 0
    shown = capsys.readouterr().out
    assert "20KB/s reserved, 100ms away" in shown
    assert "refused: no bandwidth; 54KB/s would fit" in shown
    assert run(["simulate", str(CITY), "--duration", "5"]) == 0
    assert "refused: nobody publishes this" in capsys.readouterr().out
