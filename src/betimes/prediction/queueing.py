"""The wait of an event at a station: mean and variability (001, section IV; Whitt 1983).

Equations (5), (16) and (18) of 001, and from Whitt's Queueing Network Analyzer what 001 leaves out: the
share of events that wait, and the variability of their waits. Every function takes numbers or arrays of
stations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Numbers


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


def departures_scv(load: Numbers, arrivals_scv: Numbers, service_scv: Numbers) -> Numbers:
    """Return the burstiness of a station's departures (001, eq. 16); a full one sends out what it serves."""
    busy = np.minimum(load, 1.0) ** 2
    return busy * service_scv + (1.0 - busy) * arrivals_scv


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
