"""The distribution of waits at a station, on a grid of times.

001 shifts the time at a broker by the mean wait; that constant is its largest error. Ours: an atom at zero
and a gamma tail, by Whitt's three moments. If expired events are dropped instead of served, the wait of an
arriving event is that of a queue whose customers leave (Baccelli, Boyer and Hebuterne 1984: M/M/1+G).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Numbers
from betimes.model.distributions import Constant
from betimes.model.statistics import WaitStatistics
from betimes.prediction.delay_grids import DelayGrid
from betimes.prediction.queueing import waits_gg1

LOAD_EXTRAPOLATED_FROM = 0.95  # beyond, the shape of the waits at this load is used
OBSERVATIONS_TO_TRUST = 20.0  # that many observed waits weigh as much as the model
EXPONENT_MIN = -700.0
WAIT_MIN = 1e-9  # of a service: the formulas leave some for flows so even that no event waits


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitMoments:
    """The three numbers that define a wait."""

    mean_s: float  # inf: it grows without limit
    waiting_share: float
    tail_scv: float


def shifted(grid: DelayGrid, mean_s: float) -> Numbers:
    """Return the paper's distribution: every event waits the mean (001, D_b); if infinite, for ever."""
    return grid.masses(Constant(mean_s)) if np.isfinite(mean_s) else np.zeros(grid.cells)


def spread(grid: DelayGrid, moments: WaitMoments) -> Numbers:
    """Return an atom at zero and a gamma tail with these moments."""
    share = moments.waiting_share
    if not np.isfinite(moments.mean_s):
        return np.zeros(grid.cells)
    masses = np.zeros(grid.cells)
    if share <= 0.0 or moments.mean_s <= 0.0:
        masses[0] = 1.0
        return masses
    masses = share * grid.gamma_tail(moments.mean_s / share, moments.tail_scv)
    masses[0] += 1.0 - share
    return masses


def law_moments(grid: DelayGrid, law: Numbers) -> WaitMoments:
    """Return the moments of a distribution, of the part that lies on the grid."""
    total, share = float(law.sum()), float(law[1:].sum())
    if total <= 0.0:
        return WaitMoments(mean_s=np.inf, waiting_share=1.0, tail_scv=1.0)
    if share <= 0.0:
        return WaitMoments(mean_s=0.0, waiting_share=0.0, tail_scv=1.0)
    points = np.arange(1, grid.cells) * grid.step_s
    mean_s, square = float(law[1:] @ points), float(law[1:] @ points**2)
    scv = max(square * share / mean_s**2 - 1.0, 0.0)
    return WaitMoments(mean_s=mean_s / total, waiting_share=share / total, tail_scv=scv)


def stretched(laws: Numbers, factor: float) -> Numbers:
    """Return the distributions [.., cell] of waits multiplied by a factor."""
    cells = laws.shape[-1]
    places = np.arange(cells) / factor
    low = np.minimum(places.astype(np.int64), cells - 1)
    high, part = np.minimum(low + 1, cells - 1), np.minimum(places - low, 1.0)
    below = np.cumsum(laws, axis=-1)
    return np.diff(below[..., low] * (1.0 - part) + below[..., high] * part, axis=-1, prepend=0.0)


def observed(seen: WaitStatistics) -> WaitMoments:
    """Return the moments of observed waits."""
    share = min(max(seen.waited_share, 0.0), 1.0)
    if share == 0.0 or seen.mean_s <= 0.0:
        return WaitMoments(mean_s=0.0, waiting_share=0.0, tail_scv=1.0)
    tail_mean_s = seen.mean_s / share
    tail_square = (seen.variance + seen.mean_s**2) / share
    return WaitMoments(
        mean_s=seen.mean_s, waiting_share=share, tail_scv=max(tail_square / tail_mean_s**2 - 1.0, 0.0)
    )


def calibrated(model: WaitMoments, base: WaitMoments, seen: WaitStatistics) -> WaitMoments:
    """Return the expected wait where waits were observed: those, and the change since by the model.

    `base` is the model's result for the network as it was observed.
    """
    if not np.isfinite(model.mean_s) or not np.isfinite(base.mean_s):
        return model
    known = observed(seen)
    trust = seen.count / (seen.count + OBSERVATIONS_TO_TRUST)
    more_s, more_share = model.mean_s - base.mean_s, model.waiting_share - base.waiting_share
    return WaitMoments(
        mean_s=max(trust * (known.mean_s + more_s) + (1.0 - trust) * model.mean_s, 0.0),
        waiting_share=min(
            max(trust * (known.waiting_share + more_share) + (1.0 - trust) * model.waiting_share, 0.0), 1.0
        ),
        tail_scv=trust * known.tail_scv + (1.0 - trust) * model.tail_scv,
    )


def impatient(
    grid: DelayGrid, alive_per_s: Numbers, service_s: Numbers, arrivals_scv: Numbers, service_scv: Numbers
) -> Numbers:
    """Return the distributions [station, cell] of waits at arrival if the expired are not served.

    `alive_per_s` is [station, cell]: the rate of arrivals that would not have expired after such a wait.
    For exponential gaps and services the result is exact: density P0 * lambda * exp(integral of (alive -
    mu)); otherwise its slope and its start are those of waits with the same burstiness. NaN means that
    nothing gets through.
    """
    busy = (service_s > 0.0) & (alive_per_s[:, 0] > 0.0)
    service = np.where(busy, service_s, 1.0)
    load = alive_per_s[:, 0] * service
    known = np.where(busy, np.minimum(load, LOAD_EXTRAPOLATED_FROM), 0.5)
    waits = waits_gg1(known, service, arrivals_scv, service_scv)
    share = np.minimum(waits.waiting_share, 1.0 - 1e-9)
    waiting = busy & (waits.mean_s > WAIT_MIN * service) & (share > 0.0)
    # 1 for exponential gaps and services
    slope = share / np.where(waiting, waits.mean_s * (1.0 - known) / service, 1.0)
    start = slope * (1.0 - known) / service * share / (1.0 - share) * load / known
    laws = _exponential_pieces(grid, start, slope[:, None] * (1.0 / service[:, None] - alive_per_s))
    laws[~waiting] = 0.0
    laws[~waiting, 0] = 1.0
    # a comparison with NaN is false: without this, an unknown load would count as none
    laws[~np.isfinite(alive_per_s.sum(axis=1) + service_s + arrivals_scv + service_scv)] = 0.0
    return laws


def _exponential_pieces(grid: DelayGrid, start: Numbers, decay_per_s: Numbers) -> Numbers:
    """Return distributions with an atom at 0 and a density that decays at a given rate on each step."""
    steps = decay_per_s * grid.step_s
    exponents = np.zeros((steps.shape[0], steps.shape[1] + 1))  # at both ends of every step
    np.cumsum(-steps, axis=1, out=exponents[:, 1:])
    top = exponents.max(axis=1)[:, None]
    density = start[:, None] * np.exp(np.maximum(exponents - top, EXPONENT_MIN))
    # every step is computed from its higher end, from which it falls: nothing can overflow, however steep
    higher = np.maximum(density[:, :-1], density[:, 1:])
    steep = np.minimum(np.abs(steps), -EXPONENT_MIN)
    small = steep < 1e-6
    safe = np.where(small, 1.0, steep)
    fallen = -np.expm1(-safe)
    whole = higher * grid.step_s * np.where(small, 1.0, fallen / safe)
    from_higher = np.where(small, 0.5, 1.0 / safe - (1.0 - fallen) / fallen)  # that is, 1 / (e^safe - 1)
    later = np.where(steps < 0.0, 1.0 - from_higher, from_higher)  # the mean position within the step
    laws = whole * (1.0 - later)
    laws[:, 1:] += (whole * later)[:, :-1]
    laws[:, 0] += np.exp(np.maximum(-top[:, 0], EXPONENT_MIN))
    last, left = decay_per_s[:, -1], density[:, -1]
    ends = last > 0.0  # else the rate of what never expires is too high, and waits grow without end
    beyond = (whole * later)[:, -1] + left / np.where(ends, last, 1.0)
    total = laws.sum(axis=1) + beyond
    return np.where(ends[:, None], laws / total[:, None], 0.0)
