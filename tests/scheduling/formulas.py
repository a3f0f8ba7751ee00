"""What do equations (3) to (11) of 000 say, subscriber by subscriber? The slow twin of the kernels."""

from __future__ import annotations

from scipy.special import ndtr
from tests.prediction.queues import Setting, Waiting, Wanting, Way

SPREAD_S_MIN = 1e-6


def success(
    one: Wanting,
    message: Waiting,
    way: Way,
    now_s: float,
    postponed_s: float = 0.0,
    *,
    waits_count: bool = True,
) -> float:
    """Return eq. 5 or, postponed by FT, eq. 7; the waits behind the link are ours, 0 in the paper."""
    had_s = now_s - message.born_s  # hdl
    to_come_s = way.fixed_s + message.size_kb * way.s_per_kb_mean + postponed_s  # mean of fdl: eqs. 4 and 6
    to_come_s += way.wait_s if waits_count else 0.0
    spread_s = max(message.size_kb * way.s_per_kb_sd, SPREAD_S_MIN)
    return float(ndtr((message.bound_s(one) - had_s - to_come_s) / spread_s))


def behind(setting: Setting, message: Waiting, link: int) -> list[tuple[Wanting, Way]]:
    """Return the subscribers a link leads to, each with its way."""
    ways = setting.ways
    return [(one, ways[link, one.destination]) for one in message.wanting if (link, one.destination) in ways]


def expected_benefit(setting: Setting, message: Waiting, link: int) -> float:
    """Return EB (eq. 3)."""
    return sum(
        success(one, message, way, setting.now_s) * one.price for one, way in behind(setting, message, link)
    )


def postponed_benefit(setting: Setting, message: Waiting, link: int) -> float:
    """Return EB' (eq. 8)."""
    return sum(
        success(one, message, way, setting.now_s, setting.postponed_s) * one.price
        for one, way in behind(setting, message, link)
    )


def chances(setting: Setting, message: Waiting, link: int) -> list[float]:
    """Return what rule (11) compares with epsilon."""
    return [success(one, message, way, setting.now_s) for one, way in behind(setting, message, link)]
