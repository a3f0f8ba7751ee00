"""Does the doctor say which Java and Spark would run, and that none would?"""

from __future__ import annotations

import json

import pytest

from betimes.cli.app import run
from betimes.cli.doctor import machine_facts, start_facts
from betimes.pipeline.spark.java import NoJavaError
from betimes.terminal.exit_codes import MISTAKE


@pytest.mark.long
def test_the_machine_is_described(capsys):
    assert run(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == machine_facts()
    assert facts["spark"].startswith("4.")
    assert int(facts["java"].split(".")[0]) >= 17


def test_without_a_java_it_is_one_message(capsys, monkeypatch):
    def none_found():
        raise NoJavaError(("PATH: no `java` there",))

    monkeypatch.setattr("betimes.pipeline.spark.java.find_java", none_found)
    assert run(["doctor"]) == MISTAKE
    assert "no Java that can run Spark" in capsys.readouterr().err


@pytest.mark.spark
def test_starting_is_timed(spark):
    facts = start_facts(None, None)
    assert set(facts) == {"start_s", "first_task_s", "next_task_s"}
