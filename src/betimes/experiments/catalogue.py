"""The list of all figures."""

from __future__ import annotations

import difflib

from betimes.experiments.carvalho import fig4, fig4e_f, growth
from betimes.experiments.farooq import fig4_to_7, fig8_to_11, fig12
from betimes.experiments.figure import Figure
from betimes.experiments.pongthawornkamol import fig4_to_6, fig7
from betimes.experiments.tariq import fig5, fig6
from betimes.experiments.wang import fig4 as wang_fig4
from betimes.experiments.wang import fig5_6
from betimes.model.errors import SettingError

_ALL: tuple[Figure, ...] = (
    wang_fig4.FIGURE,
    *fig5_6.FIGURES,
    *fig4_to_6.FIGURES,
    fig7.FIGURE,
    *fig4_to_7.FIGURES,
    *fig8_to_11.FIGURES,
    fig12.FIGURE,
    *fig5.FIGURES,
    fig6.FIGURE,
    *fig4.FIGURES,
    fig4e_f.FIGURE,
    growth.FIGURE,
)
FIGURES = {figure.name: figure for figure in _ALL}


def figure_named(name: str) -> Figure:
    """Return the figure of this name."""
    if name not in FIGURES:
        near = difflib.get_close_matches(name, FIGURES, n=1)
        known = f"one of {', '.join(FIGURES)}"
        hint = f"did you mean {near[0]}? ({known})" if near else known
        raise SettingError("figure", name, "no such figure", hint)
    return FIGURES[name]
