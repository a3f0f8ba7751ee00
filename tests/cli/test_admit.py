"""Are those admitted whom the network can serve, and are the others told why not?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from betimes.cli.app import run
from betimes.terminal.exit_codes import MISTAKE

CITY = Path(__file__).resolve().parents[2] / "examples" / "city.toml"

# A link for 10 messages a second; p sends 9 of even kinds 0 and 1.
TIGHT = """
duration = "10m"
brokers = [{ name = "a" }, { name = "b" }]
links = [{ from = "a", to = "b", rate = "10KB/s" }]
subscribers = [
  { name = "half", broker = "b", filter = "kind = 0", max_delay = "1s", reliability = 0.95 },
  { name = "all", broker = "b", max_delay = "1s", reliability = 0.9 },
  { name = "idle", broker = "b", filter = "kind = 0", max_delay = "1s" },
]

[[publishers]]
name = "p"
broker = "a"
rate = "9/s"
size = { exponential = "1KB" }
attributes.kind = { choice = [0, 1] }
"""


@pytest.fixture
def tight(tmp_path):
    path = tmp_path / "tight.toml"
    path.write_text(TIGHT)
    return path


def said_by(capsys, *arguments):
    assert run(["admit", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["reverse-greedy", "optimum", "hi-req-first"])
def test_who_asks_for_too_much_is_refused_with_the_number(policy, tight, capsys):
    facts = said_by(capsys, tight, "--policy", policy)
    found = {each["subscriber"]: each for each in facts["subscribers"]}
    assert [name for name, each in found.items() if each["admitted"]] == ["half", "idle"]
    assert facts["satisfied"] == 2
    refused = found["all"]
    assert refused["predicted_share"] < 0.9
    assert refused["why"] == f"predicted {refused['predicted_share']:.3f} of the 0.9 asked for"


def test_without_a_policy_all_are_admitted_and_the_unsatisfied_are_told(tight, capsys):
    facts = said_by(capsys, tight, "--policy", "none")
    assert facts["admitted"] == 3
    assert sum(bool(each["why"]) for each in facts["subscribers"]) == 3 - facts["satisfied"]


@pytest.mark.long
def test_a_margin_asks_for_more_than_was_asked(tight, capsys):
    assert said_by(capsys, tight, "--margin", "0.049")["admitted"] < 2 + 1
    found = said_by(capsys, tight, "--margin", "0.9")
    assert found["satisfied"] <= found["admitted"]


def test_a_table_is_printed_for_a_person(tight, capsys):
    assert run(["admit", str(tight)]) == 0
    out = capsys.readouterr().out
    assert "admitted (2)" in out
    assert "refused (1)" in out


@pytest.mark.parametrize("arguments", [["--policy", "fair"], ["--margin", "1"], ["--model", "x"]])
def test_a_wrong_setting_is_one_message(arguments, capsys):
    assert run(["admit", str(CITY), *arguments]) == MISTAKE
    said = capsys.readouterr().err
    assert "hint: " in said
    assert "Traceback" not in said


def test_a_network_without_subscribers_has_nobody_to_admit(tmp_path, capsys):
    path = tmp_path / "empty.toml"
    path.write_text(
        'duration = "1m"\nbrokers = [{ name = "a" }]\nlinks = []\npublishers = []\nsubscribers = []\n'
    )
    assert run(["admit", str(path)]) == MISTAKE
    assert "Traceback" not in capsys.readouterr().err
