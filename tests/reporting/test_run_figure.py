"""Is a figure run on Spark with everything it leaves: results, points, claims, picture, failures?"""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from betimes.experiments.figure import Claim, Figure, Panel, curve_points
from betimes.model.errors import BetimesError, SettingError
from betimes.reporting.run_figure import make_plan, report_failures, run_figure


def tiny_figure():
    """Return a figure whose runs take no time."""

    def double(row):
        if row["x"] == 99.0:
            raise ValueError("99 is too much")
        return {"y": row["x"] * 2}

    return Figure(
        name="tiny",
        title="Twice",
        about="whether twice is twice",
        panels=(Panel(key="y", title="twice", x_label="x", y_label="y"),),
        published=(),
        ours=(),
        rows=lambda plan: [{"x": float(x), "seed": seed} for seed in plan.seeds for x in (1, 2, 3)],
        run=double,
        points=lambda rows: curve_points(rows, panel="y", curve="twice", x="x", y="y", where={}),
        claims=lambda rows: [Claim(text="it is", published="2", measured="2", held=True)],
    )


@pytest.mark.spark
def test_a_figure_leaves_its_results_points_claims_and_picture(spark, tmp_path):
    run = run_figure(tiny_figure(), make_plan(2, 5, quick=False), tmp_path)
    assert run.failures == []
    assert [(point.x, point.y, point.seeds) for point in run.points] == [(1, 2, 2), (2, 4, 2), (3, 6, 2)]
    assert pq.read_table(tmp_path / "tiny" / "points.parquet")["y"].to_pylist() == [2.0, 4.0, 6.0]
    assert pq.read_table(tmp_path / "tiny" / "results.parquet").num_rows == 6
    assert json.loads((tmp_path / "tiny" / "claims.json").read_text())[0]["held"] is True
    assert (tmp_path / "tiny" / "tiny.png").stat().st_size > 1000
    facts = json.loads(json.dumps(run.as_json()))
    assert set(facts["points"][0]) == {"panel", "curve", "x", "y", "sd", "seeds"}
    assert set(facts["claims"][0]) == {"text", "published", "measured", "held"}


@pytest.mark.spark
def test_a_failed_run_is_reported_and_the_rest_is_drawn(spark, tmp_path, capsys):
    figure = replace(tiny_figure(), rows=lambda plan: [{"x": x, "seed": 1} for x in (1.0, 99.0)])
    run = run_figure(figure, make_plan(1, 1, quick=True), tmp_path)
    assert len(run.failures) == 1
    assert len(run.points) == 1
    assert "99 is too much" in capsys.readouterr().err
    assert pq.read_table(tmp_path / "tiny" / "failures.parquet").num_rows == 1


@pytest.mark.spark
def test_a_figure_of_which_nothing_comes_back_is_an_error(spark, tmp_path):
    figure = replace(tiny_figure(), rows=lambda plan: [{"x": 99.0, "seed": 1}])
    with pytest.raises(BetimesError, match="all 1 runs failed"):
        run_figure(figure, make_plan(1, 1, quick=True), tmp_path)


@pytest.mark.spark
def test_too_little_to_judge_by_is_no_bug(spark, tmp_path):
    def no_claims(rows):
        raise KeyError("a row that is missing")

    figure = replace(
        tiny_figure(), rows=lambda plan: [{"x": x, "seed": 1} for x in (1.0, 99.0)], claims=no_claims
    )
    with pytest.raises(BetimesError, match="too few for its claims"):
        run_figure(figure, make_plan(1, 1, quick=True), tmp_path)
    with pytest.raises(KeyError):
        run_figure(replace(tiny_figure(), claims=no_claims), make_plan(1, 1, quick=True), tmp_path)


def test_a_plan_has_seeds_from_the_first_one_on():
    assert make_plan(3, 7, quick=True).seeds == (7, 8, 9)
    for seeds, first in ((0, 1), (1, -1)):
        with pytest.raises(SettingError):
            make_plan(seeds, first, quick=False)


def test_many_failures_are_cut_short(capsys):
    report_failures([{"parameters": "{}", "error": "E", "message": str(number)} for number in range(9)])
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 6
    assert said[-1] == "and 4 more failed"
