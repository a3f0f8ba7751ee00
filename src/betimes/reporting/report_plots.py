"""The plots of `betimes report` as SVG text, from numbers that are already aggregated.

INK becomes the page's text colour, for dark and light displays. The same data give the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from betimes.kernels.types import Numbers
from betimes.model.distributions import Histogram, Normal
from betimes.reporting.figure_plots import OTHERS, OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betimes.model.statistics import LinkStatistics
    from betimes.pipeline.tables.report_facts import DropFacts, TimeLine
import html
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from typing import TYPE_CHECKING

from scipy.optimize import minimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_MIN, WIDTH_MAX = 0.8, 7.0
NAMES_SHOWN_MAX = 80  # more names would overlap
SPREAD_OUT_MAX = 300  # more nodes are placed on a circle: distances are not visible, and layout takes long
BUSY = 0.7  # from this load on, a link has another colour
INK = "#010203"  # a colour that no picture uses otherwise
FONT = "DejaVu Sans"  # comes with matplotlib, which measures texts with it; the page uses its own font
INCHES_ACROSS = 7.6
BLUE, ORANGE, GREEN = OURS[1], OURS[0], OURS[2]
GREY = "#8C8C8C"
COLOURS = (BLUE, ORANGE, GREEN, *OTHERS[1:])
ROWS_SHOWN = 40  # of subscribers in one picture; the worst served come first
ROW_INCHES, HEAD_INCHES = 0.24, 0.75
QUEUES_SHOWN, LINKS_SHOWN, WAYS_SHOWN = 8, 12, 20


def draw_svg(inches_high: float, draw: Callable[[Axes], None], about: str) -> str:
    """Return a picture for a page; `about` is its text for screen readers."""
    return draw_svgs(inches_high, [draw], about)


def draw_svgs(inches_high: float, drawings: list[Callable[[Axes], None]], about: str, across: int = 1) -> str:
    """Return several pictures as one, `across` of them in a row."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "font.family": FONT,
        "font.size": 9,
        "svg.fonttype": "none",
        "svg.hashsalt": about,  # ids follow from the content, and no two pictures of a page share one
        "text.parse_math": False,  # names may hold a $
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(INCHES_ACROSS, inches_high), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0.0)
        for number, draw in enumerate(drawings):
            axes = figure.add_subplot(-(-len(drawings) // across), across, number + 1)
            axes.patch.set_alpha(0.0)
            axes.spines[["top", "right"]].set_visible(False)
            draw(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return _for_a_page(text.getvalue(), about)


def _for_a_page(text: str, about: str) -> str:
    """Remove what only a file needs; let the picture scale with the page, and label it."""
    picture = text[text.index("<svg") :].replace(INK, "currentColor").replace(f"'{FONT}'", "sans-serif")
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    picture = re.sub(
        r' id="[a-z0-9A-Z.]+_\d+"', "", picture
    )  # the same in every picture, and never referenced
    head, rest = picture.split(">", 1)
    head = re.sub(r' (width|height)="[\d.]+pt"', "", head)
    label = html.escape(about)
    return f'{head} role="img" aria-label="{label}">{rest}'


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


def draw_network(
    brokers: Sequence[str],
    carried: Mapping[tuple[str, str], float],
    loads: Mapping[tuple[str, str], float],
    homes: Mapping[str, int],
) -> str:
    """Draw brokers with their numbers of subscribers, and links as wide as their traffic, with their load."""
    places = placed(list(brokers), list(carried))
    most = max(carried.values(), default=0.0) or 1.0

    def draw(axes: Axes) -> None:
        for (source, target), count in sorted(carried.items()):
            (x, y), (to_x, to_y) = places[source], places[target]
            bend = 0.05 if (target, source) in carried else 0.0  # so that both directions are visible
            middle_x, middle_y = (x + to_x) / 2 + bend * (to_y - y), (y + to_y) / 2 - bend * (to_x - x)
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


def placed(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Return a position for every name, such that distances are like numbers of hops (Kamada, Kawai 1989)."""
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
