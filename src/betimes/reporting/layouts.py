"""Layout of a network: distances in the picture are like hops (Kamada and Kawai, 1989)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

SPREAD_OUT_MAX = 300  # more nodes are placed on a circle: distances are not visible, and layout takes long


def placed(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Return a position for every name, such that distances are like numbers of hops."""
    count = len(names)
    angles = 2.0 * np.pi * np.arange(count) / max(count, 1)
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    if 2 < count <= SPREAD_OUT_MAX and pairs:
        places = _spread_out(places, _hops(names, pairs))
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, places, strict=True)}


def _hops(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    row = {name: number for number, name in enumerate(names)}
    ends = ([row[one] for one, _ in pairs], [row[other] for _, other in pairs])
    graph = coo_array((np.ones(len(pairs)), ends), shape=(len(names), len(names))).tocsr()
    hops = np.asarray(shortest_path(graph, directed=False, unweighted=True))
    farthest = hops[np.isfinite(hops)].max()
    hops[~np.isfinite(hops)] = farthest + 1.0  # parts without a link between them are placed apart
    return hops


def _spread_out(start: NDArray[np.float64], hops: NDArray[np.float64]) -> NDArray[np.float64]:
    first, second = np.triu_indices(len(start), 1)
    wanted = hops[first, second]
    weight = 1.0 / wanted**2

    def stress(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
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
