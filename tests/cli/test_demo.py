"""Does `betimes demo` run what was asked for, and refuse what does not go together?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from betimes.cli.app import run
from betimes.cli.demo import SECONDS


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--seconds", "0.5"], "must be between 1 and 600"),
        (["--seconds", "601"], "must be between 1 and 600"),
        (["--seconds", "nan"], "must be between 1 and 600"),
        (["--seconds", "5", "--simulated"], "cannot be combined with --simulated"),
        (["--master", "local[2]"], "needs --simulated"),
        (["--remote", "sc://host"], "needs --simulated"),
    ],
)
def test_what_does_not_go_together_is_a_mistake(capsys, arguments, problem):
    assert run(["demo", *arguments]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "seconds"), [([], SECONDS), (["--seconds", "7"], 7.0)])
def test_the_live_demo_runs_unless_the_simulated_one_is_asked_for(monkeypatch, capsys, arguments, seconds):
    class Finished:
        def __init__(self, seconds, out):
            assert out == Path("out")
            self.seconds = seconds

        def as_json(self):
            return {"seconds": self.seconds}

    monkeypatch.setattr("betimes.demo.live.run_live_demo", Finished)
    assert run(["demo", "--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out) == {"seconds": seconds}
