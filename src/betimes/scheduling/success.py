"""The probability that a message arrives in time on a route (000, equations 4 to 7)."""

from __future__ import annotations

import math

import numpy as np

from betimes.kernels.compile import kernel

# a link without variance would divide by zero; a standard deviation of a microsecond gives the same decision
SD_S_MIN = 1e-6
# Every choice needs thousands of probabilities, so the normal distribution is tabulated. Between the nodes of
# the table, the cubic through their values and slopes is used. Beyond REACH deviations the result is 0 or 1.
REACH, STEPS = 8, 64  # in standard deviations; nodes per deviation
NORMAL = np.array(
    [
        (0.5 * math.erfc(-z / math.sqrt(2.0)), math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / STEPS)
        for z in (node / STEPS for node in range(-REACH * STEPS, REACH * STEPS + 1))
    ]
)


@kernel
def forward_delay_mean_s(fixed_s: float, size_kb: float, s_per_kb_mean: float) -> float:
    """Return the mean remaining delay if every broker sends the message first (000, eq. 4).

    `fixed_s` is the part that does not depend on size: NN_p * PD and the links' fixed delays (0 in the
    paper).
    """
    return fixed_s + size_kb * s_per_kb_mean


@kernel
def success_probability(slack_s: float, spread_s: float) -> float:
    """Return P{hdl + fdl <= adl} (000, eqs. 5 and 7), with an error below 1e-9.

    `slack_s` is adl - hdl - mean of fdl, `spread_s` the standard deviation of fdl. Postponing (eq. 6)
    reduces the slack.
    """
    place = (slack_s / max(spread_s, SD_S_MIN) + REACH) * STEPS
    if not place > 0.0:
        return 0.0
    if place >= 2 * REACH * STEPS:
        return 1.0
    node = int(place)
    low = NORMAL[node, 0]
    part, rise = place - node, NORMAL[node + 1, 0] - low
    before, after = NORMAL[node, 1] - rise, NORMAL[node + 1, 1] - rise
    return float(low + part * (rise + (1.0 - part) * (before * (1.0 - part) - after * part)))
