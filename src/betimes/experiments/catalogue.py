"""The list of all figures."""

from __future__ import annotations

from betimes.experiments.carvalho import fig4
from betimes.experiments.farooq import fig4_to_7, fig8_to_12
from betimes.experiments.figure import Figure
from betimes.experiments.pongthawornkamol import fig4_to_7 as pongthawornkamol
from betimes.experiments.tariq import fig5_6
from betimes.experiments.wang import fig4_to_6
from betimes.language.suggestions import near_or_listed
from betimes.model.errors import SettingError

_ALL: tuple[Figure, ...] = (
    *fig4_to_6.FIGURES,
    *pongthawornkamol.FIGURES,
    *fig4_to_7.FIGURES,
    *fig8_to_12.FIGURES,
    *fig5_6.FIGURES,
    *fig4.FIGURES,
)
FIGURES = {figure.name: figure for figure in _ALL}


def figure_named(name: str) -> Figure:
    """Return the figure of this name."""
    if name not in FIGURES:
        raise SettingError("figure", name, "no such figure", near_or_listed(name, FIGURES))
    return FIGURES[name]
