"""Does the demo end with a table, a picture and what to try next?"""

from __future__ import annotations

import json

import pytest

from betimes.console import demo as demo_module
from betimes.console.app import command_names, run
from betimes.console.demo import NEXT, print_demo
from betimes.console.demo_figure import DEMO, RATES, STRATEGIES
from betimes.console.experiment import FigureRun


def finished(failures=()):
    rows = [
        {"strategy": strategy, "rate": RATES[-1], "delivery_rate": 0.5, "earning": 1000.0, "messages": 7}
        for strategy in STRATEGIES
    ]
    return FigureRun(
        figure=DEMO,
        rows=rows,
        points=DEMO.points(rows),
        claims=[],
        failures=list(failures),
        files={"png": "out/demo/demo.png"},
        took_s=12.0,
    )


def test_the_demo_ends_with_a_table_a_picture_and_three_next_steps(capsys):
    print_demo(finished())
    said = capsys.readouterr().out
    for text in (*STRATEGIES, "out/demo/demo.png", *NEXT):
        assert text in said
    assert len(NEXT) == 3


def test_what_to_try_next_can_be_tried():
    assert {command.split()[1] for command in NEXT} <= set(command_names())


@pytest.mark.parametrize(("failures", "code"), [((), 0), (({"error": "E"},), 1)])
def test_a_failed_run_ends_with_one(monkeypatch, capsys, failures, code):
    monkeypatch.setattr(demo_module, "run_figure", lambda *given, **named: finished(failures))
    assert run(["demo", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["figure"] == "demo"
    assert run(["demo"]) == code
