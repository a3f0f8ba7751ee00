"""The picture of a network: brokers as dots, links as lines whose width is what they carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from betimes.reporting.figure_plots import OURS
from betimes.reporting.layouts import placed
from betimes.reporting.svg import draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_MIN, WIDTH_MAX = 0.8, 7.0
NAMES_SHOWN_MAX = 80  # more names would overlap
BUSY = 0.7  # from this load on, a link has another colour


def draw_network(
    brokers: Sequence[str],
    carried: Mapping[tuple[str, str], float],
    loads: Mapping[tuple[str, str], float],
    homes: Mapping[str, int],
) -> str:
    """Draw brokers with their numbers of subscribers, and links with their traffic and load."""
    places = placed(list(brokers), list(carried))
    most = max(carried.values(), default=0.0) or 1.0

    def draw(axes: Axes) -> None:
        for (source, target), count in sorted(carried.items()):
            (x, y), (to_x, to_y) = places[source], places[target]
            bend = _bend(x, y, to_x, to_y) if (target, source) in carried else (0.0, 0.0)
            middle_x, middle_y = (x + to_x) / 2 + bend[0], (y + to_y) / 2 + bend[1]
            load = loads.get((source, target), 0.0)
            axes.plot(
                [x, middle_x, to_x],
                [y, middle_y, to_y],
                color=OURS[0] if load >= BUSY else OURS[1],
                linewidth=WIDTH_MIN + (WIDTH_MAX - WIDTH_MIN) * np.sqrt(count / most),
                solid_capstyle="round",
                alpha=0.75,
                zorder=1,
            )
            if len(carried) <= NAMES_SHOWN_MAX // 2:
                axes.annotate(
                    f"{load:.0%}", (middle_x, middle_y), fontsize=7, ha="center", va="center", zorder=3
                )
        for name, (x, y) in places.items():
            axes.plot([x], [y], "o", color=OURS[2], markersize=7 + 2 * np.log1p(homes.get(name, 0)), zorder=2)
            if len(places) <= NAMES_SHOWN_MAX:
                count = homes.get(name, 0)
                text = f"{name} ({count})" if count else name
                axes.annotate(text, (x, y), (0, 9), textcoords="offset points", ha="center", zorder=4)
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.12)
        axes.set_axis_off()

    return draw_svg(4.2, draw, "the network: brokers with their subscribers, links by what they carried")


def _bend(x: float, y: float, to_x: float, to_y: float) -> tuple[float, float]:
    """Return the offset of a line's middle, so that both directions of a link are visible."""
    return 0.05 * (to_y - y), -0.05 * (to_x - x)
