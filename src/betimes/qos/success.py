"""Will it arrive in time (000, section 5.1)? Equations (4), (5), (6) and (7)."""

from __future__ import annotations

import math

from betimes.matching.compiled import kernel

# a link without spread would divide by zero; a microsecond of spread decides the same way
SD_S_MIN = 1e-6


@kernel
def forward_delay_mean_s(fixed_s: float, size_kb: float, s_per_kb_mean: float) -> float:
    """Return the mean delay still to come, if every broker sends it first (000, eq. 4).

    `fixed_s` is what does not depend on size: NN_p * PD and the links' fixed delays (0 in the paper).
    """
    return fixed_s + size_kb * s_per_kb_mean


@kernel
def success_probability(slack_s: float, spread_s: float) -> float:
    """Return P{hdl + fdl <= adl} (000, eqs. 5 and 7).

    `slack_s` is adl - hdl - mean of fdl, `spread_s` the standard deviation of fdl. Postponing (eq. 6) is
    less slack.
    """
    return 0.5 * math.erfc(-slack_s / (max(spread_s, SD_S_MIN) * math.sqrt(2.0)))
