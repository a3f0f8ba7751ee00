"""The plots of `betimes report`, from numbers that are already aggregated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from betimes.kernels.types import Numbers
from betimes.model.distributions import Histogram, Normal
from betimes.reporting.figure_plots import OTHERS, OURS
from betimes.reporting.svg import INK, draw_svg, draw_svgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betimes.model.statistics import LinkStatistics
    from betimes.pipeline.tables.report_facts import DropFacts, TimeLine

BLUE, ORANGE, GREEN = OURS[1], OURS[0], OURS[2]
GREY = "#8C8C8C"
COLOURS = (BLUE, ORANGE, GREEN, *OTHERS[1:])
ROWS_SHOWN = 40  # of subscribers in one picture; the worst served come first
ROW_INCHES, HEAD_INCHES = 0.24, 0.75
QUEUES_SHOWN, LINKS_SHOWN, WAYS_SHOWN = 8, 12, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The on-time share of a subscriber: measured with its interval, and predicted."""

    name: str
    measured: float
    low: float
    high: float
    predicted: float | None
    earning: float
    offered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Mean waiting and transmission times along a route, link by link."""

    name: str
    steps: tuple[tuple[str, float, float], ...]  # the link, mean wait, mean transfer
    delivered: float


def draw_shares(shares: Sequence[Share]) -> str:
    """Draw measured and predicted shares, a line for each subscriber."""
    shown = shares[:ROWS_SHOWN]

    def draw(axes: Axes) -> None:
        places = np.arange(len(shown))
        axes.hlines(
            places, [each.low for each in shown], [each.high for each in shown], color=BLUE, linewidth=2
        )
        axes.plot([each.measured for each in shown], places, "o", color=BLUE, label="measured, 95 % interval")
        known = [(each.predicted, place) for place, each in enumerate(shown) if each.predicted is not None]
        if known:
            predicted, at = zip(*known, strict=True)
            axes.plot(predicted, at, "D", color=ORANGE, markerfacecolor="none", label="predicted")
        axes.set_xlim(-0.02, 1.02)
        _name_rows(axes, [each.name for each in shown])
        axes.set_xlabel("on-time share")
        _legend_above(axes)

    return draw_svg(_height(len(shown)), draw, "on-time share of each subscriber, measured and predicted")


def draw_agreement(shares: Sequence[Share]) -> str:
    """Draw predicted against measured, a dot for each subscriber."""
    pairs = [(each.predicted, each.measured) for each in shares if each.predicted is not None]

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
        predicted, measured = zip(*pairs, strict=True)
        axes.plot(predicted, measured, "o", color=BLUE, alpha=0.6, markersize=4)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted", ylabel="measured")
        axes.set_aspect("equal")

    return draw_svg(3.6, draw, "predicted on-time share against the measured one")


def draw_earnings(shares: Sequence[Share]) -> str:
    """Draw the earning from each subscriber, and the earning if all messages were in time."""
    shown = sorted(shares, key=lambda each: -each.offered)[:ROWS_SHOWN]

    def draw(axes: Axes) -> None:
        places = np.arange(len(shown))
        axes.barh(places, [each.offered for each in shown], color=GREY, alpha=0.35, label="on offer")
        axes.barh(places, [each.earning for each in shown], color=GREEN, label="earned")
        _name_rows(axes, [each.name for each in shown])
        axes.set_xlabel("price of messages")
        _legend_above(axes)

    return draw_svg(_height(len(shown)), draw, "earned, of what was on offer, by subscriber")


def draw_ways(ways: Sequence[Way]) -> str:
    """Draw the mean times along each route: pale for waiting, full for transmission."""
    shown = ways[:WAYS_SHOWN]

    def draw(axes: Axes) -> None:
        links = list(dict.fromkeys(link for way in shown for link, _, _ in way.steps))
        colour = {link: COLOURS[number % len(COLOURS)] for number, link in enumerate(links)}
        for place, way in enumerate(shown):
            left = 0.0
            for link, wait_s, transfer_s in way.steps:
                axes.barh(place, wait_s, left=left, color=colour[link], alpha=0.4)
                axes.barh(place, transfer_s, left=left + wait_s, color=colour[link])
                left += wait_s + transfer_s
        for link in links[: len(COLOURS)]:
            axes.barh(0, 0, color=colour[link], label=link)
        _name_rows(axes, [way.name for way in shown])
        axes.set_xlabel("mean seconds; pale: waiting for the link, full: transmission")
        _legend_above(axes, columns=4)

    return draw_svg(_height(len(shown)) + 0.3, draw, "mean times along each route")


def draw_queues(queues: Sequence[TimeLine]) -> str:
    """Draw the queue lengths of the busiest brokers over time."""
    busiest = sorted(queues, key=lambda each: -float(each.waiting.mean()))[:QUEUES_SHOWN]

    def draw(axes: Axes) -> None:
        for number, each in enumerate(busiest):
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(each.seconds, each.waiting, color=colour, linewidth=1.3, label=each.broker)
        axes.set(xlabel="seconds since the broker's first message", ylabel="messages waiting")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        _legend_above(axes, columns=4)

    return draw_svg(3.0, draw, "messages waiting at brokers over time")


def draw_drops(drops: Sequence[DropFacts]) -> str:
    """Draw dropped messages by broker and reason."""
    brokers = list(dict.fromkeys(each.broker for each in drops))
    totals = {name: sum(each.count for each in drops if each.broker == name) for name in brokers}
    brokers = sorted(brokers, key=lambda name: -totals[name])[:ROWS_SHOWN]

    def draw(axes: Axes) -> None:
        left = dict.fromkeys(brokers, 0.0)
        for number, reason in enumerate(dict.fromkeys(each.reason for each in drops)):
            here = {each.broker: each.count for each in drops if each.reason == reason}
            colour = COLOURS[number % len(COLOURS)]
            counts = [here.get(name, 0.0) for name in brokers]
            axes.barh(range(len(brokers)), counts, left=list(left.values()), color=colour, label=reason)
            for name in brokers:
                left[name] += here.get(name, 0.0)
        _name_rows(axes, brokers)
        axes.set_xlabel("messages, counted once for each subscriber")
        _legend_above(axes, columns=4)

    return draw_svg(_height(len(brokers)), draw, "messages dropped, by broker and reason")


def draw_links(links: Sequence[LinkStatistics], seen: Mapping[str, Histogram]) -> str:
    """Draw the measured speeds of links, and the normal density of the same mean and deviation."""
    return draw_svgs(
        1.9 * -(-len(links[:LINKS_SHOWN]) // 3),
        [_link_drawing(link, seen.get(link.name)) for link in links[:LINKS_SHOWN]],
        "seconds per kilobyte on each link, measured and fitted",
        across=3,
    )


def _link_drawing(link: LinkStatistics, seen: Histogram | None) -> Any:
    def draw(axes: Axes) -> None:
        spread = link.s_per_kb
        axes.set_title(link.name, fontsize=9)
        axes.set_yticks([])
        if seen is not None:
            edges = seen.start + seen.width * np.arange(len(seen.weights) + 1)
            density = np.array(seen.weights) / (sum(seen.weights) * seen.width)
            axes.stairs(density * 1e-3, edges * 1e3, fill=True, color=BLUE, alpha=0.5)
        if isinstance(spread, Histogram | Normal) and spread.variance > 0.0:
            low, high = _reach(spread.mean, spread.variance)
            axes.set_xlim(low * 1e3, high * 1e3)
            places = np.linspace(low, high, 100)
            axes.plot(places * 1e3, bell(places, spread.mean, spread.variance) * 1e-3, color=ORANGE)
        axes.set_xlabel("ms per kB", fontsize=8)
        axes.tick_params(labelsize=8)

    return draw


def bell(places: Numbers, mean: float, variance: float) -> Numbers:
    """Return the normal density of this mean and variance."""
    return np.asarray(np.exp(-((places - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance))


def _reach(mean: float, variance: float) -> tuple[float, float]:
    sd = float(np.sqrt(variance))
    return max(mean - 4 * sd, 0.0), mean + 4 * sd


def _height(rows: int) -> float:
    return HEAD_INCHES + ROW_INCHES * max(rows, 2)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label rows with names, the first one on top; very long names are cut."""
    axes.set_yticks(range(len(names)), [name if len(name) <= 40 else f"{name[:39]}…" for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=True, axis="x", color=GREY, alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)


def _legend_above(axes: Axes, columns: int = 3) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=8, labelcolor=INK
    )
