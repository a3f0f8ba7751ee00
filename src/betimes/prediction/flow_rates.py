"""The rate and the burstiness of the flow through each place (001, eqs. 1 to 6 and 12 to 17).

Rates are summed over the nodes of all journeys. Burstiness follows from a system of linear equations, one
for each place: the arrivals are a mixture (15), a station smooths them or not (16), and splitting and
losing make them more random (14, 17). A link that only delays is a station that is never busy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csc_array, identity
from scipy.sparse.linalg import spsolve

from betimes.kernels.types import Numbers
from betimes.prediction.journeys import NOWHERE, Journey


class Flows:
    """The nodes of all journeys, with the places that they connect; fixed as long as the routes are."""

    def __init__(self, journeys: Sequence[Journey], places: int) -> None:
        self.places = places
        self.node_places = np.concatenate([each.places for each in journeys])
        self.starts = np.cumsum([0, *(len(each.places) for each in journeys)])
        parents = np.concatenate(
            [np.where(each.parents == NOWHERE, NOWHERE, each.places[each.parents]) for each in journeys]
        )
        self._inner = parents != NOWHERE
        pairs = parents[self._inner] * places + self.node_places[self._inner]
        distinct, self._pair_of_node = np.unique(pairs, return_inverse=True)
        self._sources, self._targets = distinct // places, distinct % places
        self._entries = self.node_places[~self._inner]

    def arrivals_per_s(self, node_rates: Numbers) -> Numbers:
        """Return the arrival rate of each place (001, eq. 6), from the rates of all nodes."""
        return np.bincount(self.node_places, node_rates, minlength=self.places).astype(np.float64)

    def arrivals_scv(
        self, node_rates: Numbers, entry_scv: Numbers, load: Numbers, service_scv: Numbers
    ) -> Numbers:
        """Return the burstiness of the arrivals at each place, z_bi^2 (001, eqs. 14 to 17).

        `entry_scv` is that of the sources, one for each journey. A place without arrivals has 1.
        """
        total = self.arrivals_per_s(node_rates)
        safe = np.where(total > 0.0, total, 1.0)
        flow = np.bincount(self._pair_of_node, node_rates[self._inner], minlength=len(self._sources))
        # of the departures, the share that takes this route
        chosen = np.minimum(flow / safe[self._sources], 1.0)
        part = flow / safe[self._targets]  # of the arrivals, the share that came by this route
        busy = np.minimum(load, 1.0) ** 2
        entering = np.bincount(self._entries, node_rates[~self._inner] * entry_scv, minlength=self.places)
        constant = entering / safe + np.bincount(
            self._targets,
            part * (chosen * (busy * service_scv)[self._sources] + 1.0 - chosen),
            minlength=self.places,
        )
        constant = np.where(total > 0.0, constant, 1.0)
        weights = part * chosen * (1.0 - busy)[self._sources]
        return self._solved(weights, constant)

    def remembered_scv(self, node_rates: Numbers, entry_scv: Numbers) -> Numbers:
        """Return the burstiness of the arrivals at each place if every source's flow kept its own.

        On its route a flow is only thinned: by filters and by loss, which are random to it (001, eq. 14).
        """
        lengths = np.diff(self.starts)
        entering = node_rates[self.starts[:-1]]
        kept = node_rates / np.repeat(np.where(entering > 0.0, entering, 1.0), lengths)
        own = kept * np.repeat(entry_scv, lengths) + 1.0 - kept
        total = self.arrivals_per_s(node_rates)
        mixed = self.arrivals_per_s(node_rates * own) / np.where(total > 0.0, total, 1.0)
        return np.where(total > 0.0, mixed, 1.0)

    def _solved(self, weights: Numbers, constant: Numbers) -> Numbers:
        """Return z with z = weights * z + constant."""
        sparse = csc_array((weights, (self._targets, self._sources)), shape=(self.places, self.places))
        return np.asarray(spsolve(csc_array(identity(self.places, format="csc") - sparse), constant))
