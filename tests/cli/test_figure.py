"""Are figures listed, run and judged with the right exit code?"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from betimes.cli import figure as figure_module
from betimes.cli.app import run
from betimes.cli.figure import print_points, print_run
from betimes.experiments.catalogue import FIGURES
from betimes.experiments.figure import Claim, Point
from betimes.model.errors import BetimesError
from betimes.reporting.run_figure import FigureRun
from betimes.terminal.exit_codes import FAILED, MISTAKE


def judged(*, held, failures=()):
    """Return a run of a figure with one point and one claim."""
    return FigureRun(
        figure=FIGURES["wang-6"],
        rows=[],
        points=[Point(panel="delivery_rate", curve="eb", x=15, y=0.4, sd=0.01, seeds=2)],
        claims=[Claim(text="more is more", published="1.2", measured="1.3", held=held)],
        failures=list(failures),
        files={"png": "out/wang-6/wang-6.png"},
        took_s=1.0,
    )


def test_every_figure_is_listed(capsys):
    assert run(["figures", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["figures"]
    assert [each["name"] for each in listed] == list(FIGURES)
    assert run(["figures"]) == 0
    assert "wang-6" in capsys.readouterr().out


def test_an_unknown_figure_is_a_mistake_with_a_hint(capsys):
    assert run(["figure", "wang-66"]) == MISTAKE
    assert "wang-6" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("seeds", ["0", "-3", "many"])
def test_a_wrong_number_of_seeds_is_a_mistake(seeds, capsys):
    assert run(["figure", "wang-6", "--seeds", seeds]) == MISTAKE
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("held", [True, False])
def test_a_claim_that_does_not_hold_is_a_result_and_no_error(monkeypatch, capsys, held):
    monkeypatch.setattr(figure_module, "run_figure", lambda *given, **named: judged(held=held))
    assert run(["figure", "wang-6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claims"][0]["held"] is held


def test_a_run_that_failed_ends_with_one(monkeypatch, capsys):
    failure = {"parameters": "{}", "error": "ValueError", "message": "no", "trace": ""}
    monkeypatch.setattr(
        figure_module, "run_figure", lambda *given, **named: judged(held=True, failures=[failure])
    )
    assert run(["figure", "wang-6", "--json"]) == FAILED
    assert json.loads(capsys.readouterr().out)["failures"] == [failure]


@pytest.mark.long
def test_quick_runs_have_fewer_seeds(monkeypatch, capsys):
    plans = []

    def note_plan(figure, plan, *given, **named):
        plans.append(plan)
        return judged(held=True)

    monkeypatch.setattr(figure_module, "run_figure", note_plan)
    for arguments in ([], ["--quick"], ["--quick", "--seeds", "7", "--first-seed", "100"]):
        assert run(["figure", "wang-6", *arguments, "--json"]) == 0
    assert [(len(plan.seeds), plan.seeds[0], plan.quick) for plan in plans] == [
        (10, 1, False),
        (3, 1, True),
        (7, 100, True),
    ]


def test_points_and_claims_are_printed_for_a_person(capsys):
    print_run(judged(held=False))
    said = capsys.readouterr().out
    for text in ("0.400 ± 0.010", "NO", "more is more", "0 of 1", "wang-6.png"):
        assert text in said
    print_points(
        "gaps", [Point(panel="p", curve=c, x=x, y=1, sd=0, seeds=1) for c, x in (("a", 1), ("b", 2))]
    )
    assert "gaps" in capsys.readouterr().out


@pytest.mark.spark
@pytest.mark.figure
def test_a_quick_figure_runs_from_the_command_line(spark, tmp_path, capsys):
    code = run(["figure", "wang-6", "--quick", "--seeds", "1", "--out", str(tmp_path), "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert facts["failures"] == []
    assert code == 0
    assert {point["curve"] for point in facts["points"]} >= {"fifo", "eb"}
    assert (tmp_path / "wang-6" / "wang-6.svg").exists()


@pytest.mark.long
def test_all_figures_come_on_one_page_and_one_that_fails_loses_no_other(monkeypatch, capsys, tmp_path):
    png = tmp_path / "picture.png"
    png.write_bytes(b"")

    def one(figure, plan, out, **named):
        assert plan.quick
        if figure.name == "wang-5":
            raise BetimesError("not one of 3 runs came back")
        return replace(judged(held=figure.name == "wang-6"), figure=figure, files={"png": str(png)})

    monkeypatch.setattr(figure_module, "run_figure", one)
    assert run(["figures", "--all", "--quick", "--out", str(tmp_path), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert [each["figure"] for each in facts["figures"]] == [name for name in FIGURES if name != "wang-5"]
    assert facts["unfinished"] == [["wang-5", "not one of 3 runs came back"]]
    page = (tmp_path / "figures.html").read_text()
    assert all(f'id="{name}"' in page for name in FIGURES if name != "wang-5")
    assert f"<b>1 of {len(FIGURES) - 1}</b>claims held" in page


@pytest.mark.long
def test_all_figures_that_run_end_with_nought(monkeypatch, capsys, tmp_path):
    png = tmp_path / "picture.png"
    png.write_bytes(b"")
    monkeypatch.setattr(
        figure_module,
        "run_figure",
        lambda *given, **named: replace(judged(held=True), files={"png": str(png)}),
    )
    assert run(["figures", "--all", "--out", str(tmp_path)]) == 0
    assert "figures.html" in "".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("options", [["--seeds", "3"], ["--quick"], ["--master", "local[2]"]])
def test_how_to_run_is_no_matter_of_a_list(options, capsys):
    assert run(["figures", *options]) == MISTAKE
    said = " ".join(capsys.readouterr().err.split())
    assert f"{options[0]}" in said
    assert f"hint: betimes figures --all {options[0]} runs all of them" in said


def test_one_seed_has_no_spread_in_a_table(capsys):
    print_points("t", [Point(panel="p", curve="c", x=1.0, y=0.5, sd=0.0, seeds=1)])
    assert "0.5" in (shown := capsys.readouterr().out)
    assert "±" not in shown
