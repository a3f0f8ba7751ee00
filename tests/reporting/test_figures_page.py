"""Does one page show every figure with its claims, and name those that came to no end?"""

from __future__ import annotations

import base64

from betimes.experiments.catalogue import FIGURES
from betimes.experiments.figure import Claim
from betimes.reporting.figures_page import PAPERS, figures_page
from betimes.reporting.run_figure import FigureRun

PNG = b"\x89PNG not really"


def judged(tmp_path, name: str, held: bool) -> FigureRun:
    (tmp_path / f"{name}.png").write_bytes(PNG)
    return FigureRun(
        figure=FIGURES[name],
        rows=[{}, {}],
        points=[],
        claims=[Claim(text=f"{name} <claims>", published="1.2", measured="1.3", held=held)],
        failures=[],
        files={"png": str(tmp_path / f"{name}.png")},
        took_s=1.0,
    )


def test_every_figure_has_its_picture_and_claims(tmp_path):
    runs = [judged(tmp_path, "wang-6", True), judged(tmp_path, "farooq-12", False)]
    text = figures_page(runs, [], "3 seeds.")
    assert "<b>1 of 2</b>claims held" in text
    assert text.count(base64.b64encode(PNG).decode()) == 2
    assert '<span class="yes">held</span>' in text
    assert '<span class="no">not held</span>' in text
    assert "wang-6 &lt;claims&gt;" in text
    assert PAPERS["farooq"] in text


def test_a_figure_that_came_to_no_end_is_named_with_the_reason(tmp_path):
    text = figures_page([], [("tariq-6", "all runs failed")], "3 seeds.")
    assert "tariq-6" in text
    assert "all runs failed" in text


def test_every_figure_is_of_a_known_paper():
    assert {name.split("-")[0] for name in FIGURES} == set(PAPERS)
