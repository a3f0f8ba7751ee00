"""Does a prediction print what is to be expected, and a mistake one message?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from betimes.cli.app import run
from betimes.cli.predict import lost_text
from betimes.cli.simulate import simulate
from betimes.language.files.scenario_file import read_scenario
from betimes.terminal.exit_codes import MISTAKE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CITY = EXAMPLES / "city.toml"

BUSY = """
duration = "20m"
brokers = [{ name = "a" }, { name = "b" }, { name = "c" }]
links = [{ from = "a", to = "b", rate = "10KB/s" }, { from = "b", to = "c", rate = "12KB/s" }]
publishers = [{ name = "p", broker = "a", rate = "RATE/s", size = { exponential = "1KB" } }]
subscribers = [
  { name = "s", broker = "c", max_delay = "1s" },
  { name = "t", broker = "b", max_delay = "500ms" },
]
"""


def said_by(capsys, *arguments):
    assert run(["predict", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_every_subscriber_gets_a_share_an_interval_and_a_reason(capsys):
    facts = said_by(capsys, CITY)
    found = {each["subscriber"]: each for each in facts["subscribers"]}
    assert len(found) == 8
    assert all(each["low"] <= each["predicted_share"] <= each["high"] for each in found.values())
    assert found["speed-control"]["lost_at"][0]["place"] == "centre->north"
    assert found["crane-safety"]["asked"] == 0.99
    assert facts["stations"][0]["station"] == "centre->north"


@pytest.mark.long
def test_what_is_predicted_first_come_first_served_comes_true(capsys, tmp_path):
    for rate in (5, 8):
        path = tmp_path / "busy.toml"
        path.write_text(BUSY.replace("RATE", str(rate)))
        predicted = [each["predicted_share"] for each in said_by(capsys, path)["subscribers"]]
        outcome = simulate(read_scenario(path.read_text(), "busy.toml"), "fifo", 1)
        measured = [each.on_time_share for each in outcome.subscribers]
        assert predicted == pytest.approx(measured, abs=0.06)


@pytest.mark.long
def test_tables_are_printed_for_a_person(capsys):
    assert run(["predict", str(CITY)]) == 0
    seen = capsys.readouterr()
    assert "speed-control" in seen.out
    assert "busiest" in seen.out
    assert "ignores faults" in seen.err


@pytest.mark.long
def test_a_recipe_and_a_seed_are_predicted(capsys):
    recipe = EXAMPLES / "paper.toml"
    first = said_by(capsys, recipe, "--seed", 3, "--model", "gg1")
    assert len(first["subscribers"]) == 160
    assert first != said_by(capsys, recipe, "--seed", 4, "--model", "gg1")


@pytest.mark.long
def test_the_papers_models_keep_what_has_expired(capsys):
    assert said_by(capsys, CITY)["expired_are_dropped"] is True
    assert said_by(capsys, CITY, "--keep-expired")["expired_are_dropped"] is False
    assert said_by(capsys, CITY, "--model", "mm1")["expired_are_dropped"] is False


@pytest.mark.parametrize("arguments", [["--model", "mm2"], ["--seed", "-1"]])
def test_a_wrong_setting_is_one_message(arguments, capsys):
    assert run(["predict", str(CITY), *arguments]) == MISTAKE
    assert "Traceback" not in capsys.readouterr().err


def test_little_loss_is_not_worth_words():
    assert lost_text([{"place": "a", "wait_s": 0.0, "taking_s": 0.1, "share_gained_if_instant": 0.0}]) == "-"


@pytest.mark.spark
def test_what_was_learned_from_telemetry_is_predicted_from(spark, tmp_path, capsys):
    """The same network, stated and learned: nearly the same shares."""
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        """
duration = "20m"
brokers = [{ name = "a" }, { name = "b" }]
[[links]]
from = "a"
to = "b"
mean = "100ms/KB"
deviation = "30ms/KB"
[[publishers]]
name = "p"
broker = "a"
rate = "5/s"
attributes.level = { uniform = [0, 10] }
[[subscribers]]
name = "s"
broker = "b"
filter = "level < 9"
max_delay = "200ms"
"""
    )
    telemetry, tables = str(tmp_path / "telemetry"), str(tmp_path / "tables")
    assert run(["simulate", str(scenario), "--strategy", "fifo", "--telemetry", telemetry]) == 0
    assert run(["pipeline", "run", "--telemetry", telemetry, "--tables", tables]) == 0
    capsys.readouterr()
    shares = []
    for source in ([str(scenario)], ["--tables", tables]):
        assert run(["predict", *source, "--json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["subscribers"]
        shares.append(told["predicted_share"])
    assert 0.3 < shares[0] < 0.99
    assert shares[1] == pytest.approx(shares[0], abs=0.05)
    assert run(["admit", "--tables", tables, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == tables


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "pass a scenario file or --tables"),
        (["examples/city.toml", "--tables", "t"], "not both"),
        (["--tables", "no/such/place"], "no/such/place: there are no tables"),
    ],
)
def test_there_is_one_source_to_predict_from(arguments, said, capsys):
    assert run(["predict", *arguments]) == MISTAKE
    assert said in capsys.readouterr().err
