"""Which figures are there?"""

from __future__ import annotations

import difflib

from betimes.experiments import (
    carvalho_fig4a,
    carvalho_fig4b,
    carvalho_fig4c_d,
    carvalho_fig4e_f,
    carvalho_growth,
    farooq_fig4,
    farooq_fig5,
    farooq_fig7,
    farooq_fig8,
    farooq_fig9,
    farooq_fig10_11,
    farooq_fig12,
    pongthawornkamol_fig4,
    pongthawornkamol_fig5,
    pongthawornkamol_fig6,
    pongthawornkamol_fig7,
    tariq_fig5_churn,
    tariq_fig5_convergence,
    tariq_fig5_scale,
    tariq_fig6,
    wang_fig4,
    wang_fig5,
    wang_fig6,
)
from betimes.experiments.figures import Figure
from betimes.model.errors import SettingError

_ALL: tuple[Figure, ...] = (
    wang_fig4.FIGURE,
    wang_fig5.FIGURE,
    wang_fig6.FIGURE,
    pongthawornkamol_fig4.FIGURE,
    pongthawornkamol_fig5.FIGURE,
    pongthawornkamol_fig6.FIGURE,
    pongthawornkamol_fig7.FIGURE,
    farooq_fig4.FIGURE,
    farooq_fig5.FIGURE,
    farooq_fig7.FIGURE,
    farooq_fig8.FIGURE,
    farooq_fig9.FIGURE,
    farooq_fig10_11.FIGURE,
    farooq_fig12.FIGURE,
    tariq_fig5_convergence.FIGURE,
    tariq_fig5_churn.FIGURE,
    tariq_fig5_scale.FIGURE,
    tariq_fig6.FIGURE,
    carvalho_fig4a.FIGURE,
    carvalho_fig4b.FIGURE,
    carvalho_fig4c_d.FIGURE,
    carvalho_fig4e_f.FIGURE,
    carvalho_growth.FIGURE,
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
