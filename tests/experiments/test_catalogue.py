"""Are the figures found by name?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from betimes.experiments.catalogue import FIGURES, figure_named
from betimes.experiments.figure import FigurePlan
from betimes.model.errors import SettingError


def test_every_figure_is_found_by_its_own_name() -> None:
    assert all(figure_named(name).name == name for name in FIGURES)


def test_an_unknown_figure_is_told_the_nearest_name() -> None:
    with pytest.raises(SettingError, match="did you mean wang-6"):
        figure_named("wang6")


def _is_less(quick: Mapping[str, Any], full: Mapping[str, Any]) -> bool:
    """Tell whether a run has fewer peers and cycles than another."""
    return bool(quick["peers"] < full["peers"] and quick["cycles"] < full["cycles"])


@pytest.mark.parametrize("name", FIGURES)
def test_a_quick_plan_has_fewer_and_shorter_runs_than_a_full_one(name: str) -> None:
    figure = figure_named(name)
    quick, full = figure.rows(FigurePlan(seeds=(1,), quick=True)), figure.rows(FigurePlan(seeds=(1,)))
    assert 0 < len(quick) <= len(full)
    assert len(quick) < len(full) or all(_is_less(*pair) for pair in zip(quick, full, strict=True))
    durations_s = [[row["duration_s"] for row in rows if "duration_s" in row] for rows in (quick, full)]
    assert not any(durations_s) or max(durations_s[0]) < min(durations_s[1])


@pytest.mark.parametrize("name", FIGURES)
def test_every_published_number_has_a_panel_and_a_curve(name: str) -> None:
    figure = figure_named(name)
    panels = {panel.key for panel in figure.panels}
    curves = {row.get("strategy") for row in figure.rows(FigurePlan(seeds=(1,)))}
    assert all(each.panel in panels and each.curve in curves for each in figure.published)
