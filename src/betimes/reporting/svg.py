"""Plots as SVG text for a page, in the page's text colour, for dark and light displays.

INK becomes the page's text colour. The same data give the same text.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"  # a colour that no picture uses otherwise
FONT = "DejaVu Sans"  # comes with matplotlib, which measures texts with it; the page uses its own font
INCHES_ACROSS = 7.6


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
