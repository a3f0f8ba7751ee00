"""The list of all figures."""

from __future__ import annotations

import difflib

from betimes.experiments.carvalho import fig4a as carvalho_fig4a
from betimes.experiments.carvalho import fig4b as carvalho_fig4b
from betimes.experiments.carvalho import fig4c_d as carvalho_fig4c_d
from betimes.experiments.carvalho import fig4e_f as carvalho_fig4e_f
from betimes.experiments.carvalho import growth as carvalho_growth
from betimes.experiments.farooq import fig4 as farooq_fig4
from betimes.experiments.farooq import fig5 as farooq_fig5
from betimes.experiments.farooq import fig7 as farooq_fig7
from betimes.experiments.farooq import fig8 as farooq_fig8
from betimes.experiments.farooq import fig9 as farooq_fig9
from betimes.experiments.farooq import fig10_11 as farooq_fig10_11
from betimes.experiments.farooq import fig12 as farooq_fig12
from betimes.experiments.figure import Figure
from betimes.experiments.pongthawornkamol import fig4 as pongthawornkamol_fig4
from betimes.experiments.pongthawornkamol import fig5 as pongthawornkamol_fig5
from betimes.experiments.pongthawornkamol import fig6 as pongthawornkamol_fig6
from betimes.experiments.pongthawornkamol import fig7 as pongthawornkamol_fig7
from betimes.experiments.tariq import fig5_churn as tariq_fig5_churn
from betimes.experiments.tariq import fig5_convergence as tariq_fig5_convergence
from betimes.experiments.tariq import fig5_scale as tariq_fig5_scale
from betimes.experiments.tariq import fig6 as tariq_fig6
from betimes.experiments.wang import fig4 as wang_fig4
from betimes.experiments.wang import fig5 as wang_fig5
from betimes.experiments.wang import fig6 as wang_fig6
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
