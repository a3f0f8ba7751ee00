"""Flows through stations, and the waits there: mean and variability (001, section IV; Whitt 1983).

`Flows` has the rates and the burstiness (001, eqs. 1 to 6 and 12 to 17): arrivals are a mixture (15), a
station smooths them or not (16), and splitting and losing make them more random (14, 17), which is a system
of linear equations. The waits are equations (5) and (18), and from Whitt's Queueing Network Analyzer what 001
leaves out: the share of events that wait, and the variability of their waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, identity
from scipy.sparse.linalg import spsolve

from betimes.kernels.types import Numbers
from betimes.prediction.journeys import NOWHERE, Journey


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waits:
    """The waits at stations: arrays, one number for each."""

    mean_s: Numbers  # q_b, events that do not wait included
    waiting_share: Numbers  # P(W > 0)
    tail_scv: Numbers  # squared coefficient of variation of the waits of those that wait


def mean_wait_mm1_s(load: Numbers, service_s: Numbers) -> Numbers:
    """Return the mean wait q_b if all is exponential (001, eq. 5); infinite from load 1 on."""
    with np.errstate(divide="ignore", invalid="ignore"):
        wait_s = load * service_s / (1.0 - load)
    return np.where(load < 1.0, wait_s, np.inf)


def mean_wait_gg1_s(
    load: Numbers, service_s: Numbers, arrivals_scv: Numbers, service_scv: Numbers
) -> Numbers:
    """Return the mean wait q_b by burstiness of arrivals and service (001, eq. 18); infinite at load 1."""
    spread = arrivals_scv + service_scv
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = -2.0 * (1.0 - load) * (1.0 - arrivals_scv) ** 2 / (3.0 * load * spread)
        # g of eq. 18; beyond load 1, where there is no wait to correct, its exponent would overflow
        smooth = np.where(arrivals_scv < 1.0, np.exp(np.minimum(exponent, 0.0)), 1.0)
        wait_s = load * service_s * spread * smooth / (2.0 * (1.0 - load))
    wait_s = np.where((load > 0.0) & (spread > 0.0), wait_s, 0.0)
    return np.where(load < 1.0, wait_s, np.inf)


def waiting_share(load: Numbers, arrivals_scv: Numbers, service_scv: Numbers) -> Numbers:
    """Return the share of events that wait at all, P(W > 0) (Whitt 1983, eqs. 48 to 50)."""
    full = np.clip(load, 0.0, 1.0)
    square = 4.0 * arrivals_scv + service_scv
    # both divisors are 0 for even flows at load 0 or 1, where their weight does not count
    divisor = 1.0 + full * (service_scv - 1.0) + full**2 * square
    smooth = (1.0 + arrivals_scv + full * service_scv) / np.maximum(divisor, 1e-300)
    bursty = 4.0 * full / np.maximum(arrivals_scv + full**2 * square, 1e-300)
    weight = np.where(arrivals_scv <= 1.0, smooth, bursty)
    return np.clip(full + (arrivals_scv - 1.0) * full * (1.0 - full) * weight, 0.0, 1.0)


def waits_tail_scv(load: Numbers, service_scv: Numbers) -> Numbers:
    """Return the variability of the waits of those that wait (Whitt 1983, eqs. 53 and 54)."""
    full = np.clip(load, 0.0, 1.0)
    # the third moment of service over the cube of the first, by two moments
    third = np.where(
        service_scv >= 1.0,
        3.0 * service_scv * (1.0 + service_scv),
        (2.0 * service_scv + 1.0) * (service_scv + 1.0),
    )
    return 2.0 * full - 1.0 + 4.0 * (1.0 - full) * third / (3.0 * (service_scv + 1.0) ** 2)


def waits_gg1(load: Numbers, service_s: Numbers, arrivals_scv: Numbers, service_scv: Numbers) -> Waits:
    """Return the waits at stations: q_b of eq. 18, and its variability."""
    return Waits(
        mean_s=mean_wait_gg1_s(load, service_s, arrivals_scv, service_scv),
        waiting_share=waiting_share(load, arrivals_scv, service_scv),
        tail_scv=waits_tail_scv(load, service_scv),
    )


class Flows:
    """The nodes of all journeys, with the places that they connect; fixed as long as the routes are.

    A link that only delays is a station that is never busy.
    """

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
        # z = weights * z + constant
        sparse = csc_array((weights, (self._targets, self._sources)), shape=(self.places, self.places))
        return np.asarray(spsolve(csc_array(identity(self.places, format="csc") - sparse), constant))

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
