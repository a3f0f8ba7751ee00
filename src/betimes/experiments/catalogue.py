"""Which figures are there?"""

from __future__ import annotations

import difflib

from betimes.experiments import wang_fig4, wang_fig5, wang_fig6
from betimes.experiments.figures import Figure
from betimes.model.errors import SettingError

FIGURES = {figure.name: figure for figure in (wang_fig4.FIGURE, wang_fig5.FIGURE, wang_fig6.FIGURE)}


def figure_named(name: str) -> Figure:
    """Return the figure of this name."""
    if name not in FIGURES:
        near = difflib.get_close_matches(name, FIGURES, n=1)
        known = f"one of {', '.join(FIGURES)}"
        hint = f"did you mean {near[0]}? ({known})" if near else known
        raise SettingError("figure", name, "no such figure", hint)
    return FIGURES[name]
