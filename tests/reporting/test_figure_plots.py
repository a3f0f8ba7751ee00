"""Is a figure the same every time, with everything in it?"""

from __future__ import annotations

import pytest

from betimes.experiments.figure import Panel, Point, PublishedValue
from betimes.model.errors import BetimesError
from betimes.reporting.figure_plots import MARKERS, curve_styles, draw_figure

pytestmark = pytest.mark.long

PANELS = [
    Panel(key="share", title="(a) on time", x_label="rate", y_label="share"),
    Panel(key="earning", title="(b) earning", x_label="rate", y_label="earning"),
]
POINTS = [
    Point(panel=panel, curve=curve, x=x, y=x * scale, sd=0.1, seeds=3)
    for panel, xs in (("share", (1.0, 2.0, 3.0)), ("earning", (5.0,)))
    for curve, scale in (("fifo", 1.0), ("ours", 2.0))
    for x in xs
]
MARKS = [PublishedValue(panel="share", curve="fifo", x=3.0, y=2.5)]


def draw(stem):
    return draw_figure(stem, title="A figure", panels=PANELS, points=POINTS, published=MARKS, ours=["ours"])


def test_the_same_points_give_the_same_bytes(tmp_path):
    first, second = draw(tmp_path / "one"), draw(tmp_path / "deep" / "two")
    assert [path.name for path in first] == ["one.png", "one.svg"]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in first[1].read_bytes()


def test_our_curves_stand_out_and_no_two_look_alike():
    styles = curve_styles(POINTS, MARKS, ["ours"])
    assert list(styles) == ["fifo", "ours"]
    assert styles["ours"].width > styles["fifo"].width
    assert styles["ours"].height > styles["fifo"].height
    many = [Point(panel="share", curve=str(n), x=0, y=0, sd=0, seeds=1) for n in range(len(MARKERS))]
    looks = {(style.colour, style.marker) for style in curve_styles(many, [], []).values()}
    assert len(looks) == len(MARKERS)


def test_a_scatter_panel_draws_a_cloud_and_no_band(tmp_path):
    panel = Panel(key="share", title="all", x_label="said", y_label="seen", is_scatter=True)
    _, svg = draw_figure(tmp_path / "cloud", title="A cloud", panels=[panel], points=POINTS)
    _, curves = draw_figure(tmp_path / "curves", title="A cloud", panels=[PANELS[0]], points=POINTS)
    assert svg.read_bytes() != curves.read_bytes()
    assert b"FillBetween" not in svg.read_bytes()
    assert b"FillBetween" in curves.read_bytes()


def test_a_place_that_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BetimesError, match="cannot be written"):
        draw(tmp_path / "file" / "figure")


def test_a_figure_without_panels_is_a_bug(tmp_path):
    with pytest.raises(ValueError, match="without panels"):
        draw_figure(tmp_path / "x", title="", panels=[], points=[])


def test_a_logarithmic_panel_marks_its_few_places(tmp_path):
    panel = Panel(key="hops", title="hops", x_label="nodes", y_label="hops", x_is_logarithmic=True)
    points = [Point(panel="hops", curve="c", x=x, y=1.0, sd=0.1, seeds=3) for x in (252.0, 1000.0, 4000.0)]
    plain = Panel(key="hops", title="hops", x_label="nodes", y_label="hops")
    drawn = [
        draw_figure(tmp_path / name, title="A figure", panels=[each], points=points)[1].read_text()
        for name, each in (("log", panel), ("plain", plain))
    ]
    assert drawn[0] != drawn[1]
    assert "<!-- 252 -->" in drawn[0]
    assert "<!-- 252 -->" not in drawn[1]
