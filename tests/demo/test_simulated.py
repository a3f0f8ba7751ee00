"""Does the simulated demo end with a table, a picture and what to try next?"""

from __future__ import annotations

import json

import pytest

from betimes.cli.app import command_names, run
from betimes.demo import simulated as demo_module
from betimes.demo.simulated import DEMO, NEXT, RATES, STRATEGIES, demo_table, print_demo
from betimes.reporting.run_figure import FigureRun
from betimes.terminal.terminal import typed


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
    for text in (*STRATEGIES, "out/demo/demo.png", *map(typed, NEXT)):
        assert text in said
    assert len(NEXT) == 3


def test_what_to_try_next_can_be_tried():
    assert {command.split()[1] for command in NEXT} <= set(command_names())


@pytest.mark.parametrize(("failures", "code"), [((), 0), (({"error": "E"},), 1)])
def test_a_failed_run_ends_with_one(monkeypatch, capsys, failures, code):
    monkeypatch.setattr(demo_module, "run_figure", lambda *given, **named: finished(failures))
    assert run(["demo", "--simulated", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["figure"] == "demo"
    assert run(["demo", "--simulated"]) == code


def test_the_table_has_mean_and_spread_at_the_congested_rate():
    rows = [
        {"strategy": "eb", "rate": RATES[-1], "delivery_rate": share, "earning": 100.0, "messages": 5}
        for share in (0.4, 0.6)
    ]
    table = {row[0]: row for row in demo_table(rows)}
    assert table["eb"][2] == "0.50 ± 0.14"
    assert len(table["fifo"]) == 2  # nothing ran: nothing is shown
