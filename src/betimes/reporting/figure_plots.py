"""The plot of a figure: panels of curves with mean and spread, and marks at published numbers.

The same points give the same bytes, PNG and SVG: no dates, no random ids, only matplotlib's own fonts.
Curves differ in colour, marker and dash, so that colour alone is never needed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from betimes.experiments.figure import Panel, Point, PublishedValue
from betimes.model.errors import BetimesError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, distinct with any kind of colour vision; without yellow.
OURS = ("#D55E00", "#0072B2", "#009E73")
OTHERS = ("#000000", "#56B4E9", "#CC79A7", "#E69F00", "#7F7F7F")
MARKERS = ("o", "s", "^", "v", "D", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
PUBLISHED_MARKER = "*"

PANEL_INCHES = (4.6, 3.5)
PANELS_ACROSS_MAX = 3
LEGEND_ENTRY_INCHES = 2.3  # a long entry; this many in a row fit without being cut
PLACES_MARKED_MAX = 6  # on a logarithmic axis
BAND_POINTS_MIN = 3  # fewer points get error bars in place of a band


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveStyle:
    """The style of one curve, the same in every panel."""

    colour: str
    marker: str
    dash: Any
    width: float
    height: int  # the drawing order: higher lies on top


def draw_figure(
    stem: Path,
    *,
    title: str,
    panels: Sequence[Panel],
    points: Sequence[Point],
    published: Sequence[PublishedValue] = (),
    ours: Collection[str] = (),
) -> tuple[Path, Path]:
    """Draw a figure as `STEM.png` and `STEM.svg` and return both paths; curves in `ours` stand out."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if not panels:
        raise ValueError("a figure without panels")
    # The salt makes the ids in the SVG follow from its content.
    with mpl.rc_context({"svg.hashsalt": "betimes", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = _blank(title, len(panels))
        FigureCanvasAgg(figure)  # needs no display
        styles = curve_styles(points, published, ours)
        for axes, panel in zip(figure.axes, panels, strict=True):
            _draw_panel(axes, panel, points, published, styles)
        has_bands = any(not panel.is_scatter for panel in panels)
        _draw_legend(figure, styles, marked=bool(published), has_bands=has_bands)
        return _save(figure, stem)


def curve_styles(
    points: Sequence[Point], published: Sequence[PublishedValue], ours: Collection[str]
) -> dict[str, CurveStyle]:
    """Return the style of every curve, in the order of their first appearance."""
    curves = list(dict.fromkeys([*(point.curve for point in points), *(each.curve for each in published)]))
    styles = {}
    own, other = 0, 0
    for number, curve in enumerate(curves):
        marker = MARKERS[number % len(MARKERS)]
        if curve in ours:
            colour, dash, width, height = OURS[own % len(OURS)], DASHES[0], 2.6, 4
            own += 1
        else:
            colour, dash, width, height = OTHERS[other % len(OTHERS)], DASHES[other % len(DASHES)], 1.3, 3
            other += 1
        styles[curve] = CurveStyle(colour=colour, marker=marker, dash=dash, width=width, height=height)
    return styles


def _blank(title: str, panels: int) -> Figure:
    from matplotlib.figure import Figure

    across = min(panels, PANELS_ACROSS_MAX)
    down = math.ceil(panels / across)
    figure = Figure(figsize=(PANEL_INCHES[0] * across, PANEL_INCHES[1] * down + 0.9), layout="constrained")
    for number in range(panels):
        figure.add_subplot(down, across, number + 1)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    return figure


def _draw_panel(
    axes: Axes,
    panel: Panel,
    points: Sequence[Point],
    published: Sequence[PublishedValue],
    styles: dict[str, CurveStyle],
) -> None:
    here = [point for point in points if point.panel == panel.key]
    if panel.is_scatter:
        axes.plot([0.0, 1.0], [0.0, 1.0], color="#999999", linewidth=0.8, zorder=1)
    for curve, style in styles.items():
        on_curve = sorted((point for point in here if point.curve == curve), key=attrgetter("x"))
        if panel.is_scatter:
            _draw_cloud(axes, on_curve, style)
        else:
            _draw_curve(axes, on_curve, style)
        marks = [each for each in published if each.panel == panel.key and each.curve == curve]
        x, y = [mark.x for mark in marks], [mark.y for mark in marks]
        looks: dict[str, Any] = {"markersize": 12, "markerfacecolor": "white", "markeredgewidth": 1.2}
        axes.plot(x, y, PUBLISHED_MARKER, color=style.colour, zorder=style.height + 2, **looks)
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel(panel.x_label)
    if panel.x_is_logarithmic:
        _scale_by_logarithm(axes, sorted({point.x for point in here}))
    axes.set_ylabel(panel.y_label)
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    values = [point.y for point in here] + [mark.y for mark in published if mark.panel == panel.key]
    if values and min(values) >= 0:
        axes.set_ylim(bottom=0)  # shares and sums start at zero, or differences look larger than they are


def _scale_by_logarithm(axes: Axes, places: Sequence[float]) -> None:
    """Use a logarithmic axis; label a few x values themselves, otherwise powers of ten."""
    from matplotlib.ticker import NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    if len(places) <= PLACES_MARKED_MAX:
        axes.set_xticks(places, labels=[f"{place:g}" for place in places])


def _draw_curve(axes: Axes, points: list[Point], style: CurveStyle) -> None:
    if not points:
        return
    x, y, sd = ([getattr(point, name) for point in points] for name in ("x", "y", "sd"))
    line: dict[str, Any] = {"color": style.colour, "linestyle": style.dash, "linewidth": style.width}
    axes.plot(x, y, marker=style.marker, markersize=5, zorder=style.height, **line)
    if len(points) >= BAND_POINTS_MIN:
        low, high = ([a + sign * b for a, b in zip(y, sd, strict=True)] for sign in (-1, 1))
        axes.fill_between(x, low, high, color=style.colour, alpha=0.15, linewidth=0, zorder=1)
    else:
        axes.errorbar(x, y, yerr=sd, fmt="none", ecolor=style.colour, capsize=3, zorder=style.height)


def _draw_cloud(axes: Axes, points: list[Point], style: CurveStyle) -> None:
    x, y = [point.x for point in points], [point.y for point in points]
    looks: dict[str, Any] = {"markersize": 2.5, "alpha": 0.5, "markeredgewidth": 0}
    axes.plot(x, y, style.marker, color=style.colour, zorder=style.height, **looks)


def _draw_legend(figure: Figure, styles: dict[str, CurveStyle], *, marked: bool, has_bands: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=s.colour, linestyle=s.dash, linewidth=s.width, marker=s.marker, label=curve)
        for curve, s in styles.items()
    ]
    if marked:
        label = "published (colour of its curve)"
        star = Line2D([], [], linestyle="none", marker=PUBLISHED_MARKER, color="#444444", label=label)
        star.set(markersize=11, markerfacecolor="white")
        handles.append(star)
    if has_bands:
        handles.append(Line2D([], [], linestyle="none", label="bands: one standard deviation over seeds"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), max(1, int(figure.get_figwidth() / LEGEND_ENTRY_INCHES))),
        frameon=False,
        fontsize=9,
    )


def _save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(png, dpi=150, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    except OSError as error:
        raise BetimesError(f"{stem.parent}: the picture cannot be written ({error.strerror})") from error
    return png, svg
