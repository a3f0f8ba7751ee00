"""The picture of a network: brokers as dots, links as lines whose width is what they carried.

Distances between brokers are like numbers of hops (Kamada and Kawai, 1989).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from betimes.kernels.types import Numbers
from betimes.reporting.figure_plots import OURS
from betimes.reporting.svg import draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_MIN, WIDTH_MAX = 0.8, 7.0
NAMES_SHOWN_MAX = 80  # more names would overlap
SPREAD_OUT_MAX = 300  # more nodes are placed on a circle: distances are not visible, and layout takes long
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


def placed(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Return a position for every name, such that distances are like numbers of hops."""
    count = len(names)
    angles = 2.0 * np.pi * np.arange(count) / max(count, 1)
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    if 2 < count <= SPREAD_OUT_MAX and pairs:
        places = _spread_out(places, _hops(names, pairs))
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, places, strict=True)}


def _hops(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Numbers:
    row = {name: number for number, name in enumerate(names)}
    ends = ([row[one] for one, _ in pairs], [row[other] for _, other in pairs])
    graph = coo_array((np.ones(len(pairs)), ends), shape=(len(names), len(names))).tocsr()
    hops = np.asarray(shortest_path(graph, directed=False, unweighted=True))
    farthest = hops[np.isfinite(hops)].max()
    hops[~np.isfinite(hops)] = farthest + 1.0  # parts without a link between them are placed apart
    return hops


def _spread_out(start: Numbers, hops: Numbers) -> Numbers:
    first, second = np.triu_indices(len(start), 1)
    wanted = hops[first, second]
    weight = 1.0 / wanted**2

    def stress(flat: Numbers) -> tuple[float, Numbers]:
        places = flat.reshape(-1, 2)
        apart = places[first] - places[second]
        distance = np.maximum(np.hypot(*apart.T), 1e-9)
        off = distance - wanted
        pull = (2.0 * weight * off / distance)[:, None] * apart
        slope = np.zeros_like(places)
        np.add.at(slope, first, pull)
        np.add.at(slope, second, -pull)
        return float((weight * off**2).sum()), slope.ravel()

    found = minimize(stress, (start * hops.max() / 2.0).ravel(), jac=True, method="L-BFGS-B")
    return np.asarray(found.x.reshape(-1, 2))
