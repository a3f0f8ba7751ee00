"""The page of all figures of the papers, with each claim as held or not held."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from betimes.reporting.page import PageTable, Section, page_text
from betimes.reporting.run_figure import FigureRun

PAPERS = {
    "wang": "Bounded-delay scheduling (Wang et al., 2006)",
    "pongthawornkamol": "Predicting on-time delivery (Pongthawornkamol and Nahrstedt)",
    "tariq": "The brokerless overlay (Tariq et al., 2011)",
    "farooq": "Semi-durable subscriptions (Farooq et al.)",
    "carvalho": "Reservations through rendezvous points (Carvalho et al., 2005)",
}


def figures_page(runs: Sequence[FigureRun], unfinished: Sequence[tuple[str, str]], about: str) -> str:
    """Return the page: a section for each figure, and a table of figures that failed with the reason."""
    claims = [claim for run in runs for claim in run.claims]
    held = sum(claim.held for claim in claims)
    numbers = [
        ("claims held", f"{held} of {len(claims)}"),
        ("figures", f"{len(runs):,}"),
        ("runs", f"{sum(len(run.rows) for run in runs):,}"),
        ("runs failed", f"{sum(len(run.failures) for run in runs):,}"),
    ]
    sections = [_section(run) for run in runs]
    if unfinished:
        table = PageTable(columns=["figure", "why"], rows=list(unfinished))
        sections.append(Section(key="unfinished", title="Failed", tables=[table]))
    return page_text("The figures of the five papers", about, numbers, sections)


def _section(run: FigureRun) -> Section:
    paper = PAPERS.get(run.figure.name.split("-")[0], "")
    rows = [
        ("held" if each.held else "not held", each.text, each.published, each.measured) for each in run.claims
    ]
    table = PageTable(columns=["", "claim", "published", "measured"], rows=rows)
    return Section(
        key=run.figure.name,
        title=run.figure.name,
        texts=[f"{paper}: {run.figure.about}.", f"{len(run.rows):,} runs, {run.took_s:,.0f} s."],
        pictures=[_picture(Path(run.files["png"]), run.figure.title)],
        tables=[table] if run.claims else [],
    )


def _picture(png: Path, about: str) -> str:
    data = base64.b64encode(png.read_bytes()).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" alt="{escape(about)}">'
