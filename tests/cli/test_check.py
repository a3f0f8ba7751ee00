"""Is a scenario file summed up, and are all its mistakes told?"""

from __future__ import annotations

import json

from betimes.cli.app import run
from betimes.cli.check import scenario_facts
from betimes.model.distributions import Uniform
from betimes.model.topology import LayeredWorld, Link, Scenario
from betimes.terminal.exit_codes import MISTAKE

RECIPE = LayeredWorld(link_s_per_kb=Uniform(0.05, 0.1), attribute_values=Uniform(0, 10))


def test_a_recipe_is_summed_up():
    facts = scenario_facts(RECIPE)
    assert (facts["brokers"], facts["layers"], facts["subscribers"]) == (32, "4-4-8-16", 160)


def test_a_network_is_summed_up():
    link = Link(source="a", target="b", s_per_kb_mean=0.1)
    network = Scenario(
        name="two",
        duration_s=60,
        processing_s=0,
        brokers=("a", "b"),
        links=(link,),
        publishers=(),
        subscriptions=(),
    )
    facts = scenario_facts(network)
    assert (facts["kind"], facts["brokers"], facts["links"], facts["published_per_s"]) == ("network", 2, 1, 0)


def test_a_file_that_is_not_there_is_one_message(capsys, tmp_path):
    assert run(["check", str(tmp_path / "none.toml")]) == MISTAKE
    assert "no such file" in capsys.readouterr().err


def test_a_file_with_mistakes_names_itself(capsys, tmp_path):
    (tmp_path / "bad.toml").write_text('brokers = "three"\nspeed = -1\n')
    assert run(["check", str(tmp_path / "bad.toml")]) == MISTAKE
    said = capsys.readouterr()
    assert "bad.toml: " in said.err
    assert said.out == ""


def test_a_right_file_is_summed_up_as_table_or_json(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("betimes.cli.check.read_scenario", lambda text, source: RECIPE)
    (tmp_path / "right.toml").touch()
    assert run(["check", str(tmp_path / "right.toml")]) == 0
    assert "is valid" in capsys.readouterr().out
    assert run(["check", str(tmp_path / "right.toml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["valid"] is True


def test_more_work_than_a_run_can_take_is_a_mistake(tmp_path, capsys):
    path = tmp_path / "much.toml"
    path.write_text('duration = "1e300h"\n[generate]\n')
    assert run(["check", str(path)]) == MISTAKE
    assert "at most 10,000,000" in capsys.readouterr().err
