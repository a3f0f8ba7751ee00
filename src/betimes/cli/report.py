"""`betimes report`: draw the pipeline's tables as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from betimes.cli.pipeline import WrittenTables
from betimes.cli.predict import model_named
from betimes.terminal.progress import waiting
from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json

EXAMPLES = examples(
    "betimes simulate examples/city.toml --telemetry out/city",
    "betimes pipeline run --telemetry out/city --tables out/tables",
    "betimes report --tables out/tables --out out/report.html",
)


def report_command(
    tables: WrittenTables,
    out: Annotated[Path, typer.Option("--out", help="The page to write.", metavar="FILE")] = Path(
        "report.html"
    ),
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="The model of predictions: wait, mm1 or gg1, as in `betimes predict`. "
            "Default: a twin's predictions, if the tables have them; else wait.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a report page: on-time shares, delays along routes, drops, earnings and links.

    The page is one HTML file that loads nothing from the network, for dark and light displays. It shows
    measured shares beside predictions: those of a twin, if the tables have them; else predictions from the
    same tables that assume first come, first served.
    """
    chosen = None if model is None else model_named(model)
    from betimes.reporting.page import check_page_place, page_text, write_page
    from betimes.reporting.report_sections import findings_in, in_short, report_json, report_sections

    check_page_place(out)
    with waiting(f"reading {tables}"):
        found = findings_in(tables, chosen)
    with waiting("drawing"):
        about = f"Telemetry in {found.run.telemetry}, {found.run.over_s:,.0f} s."
        text = page_text("Network report", about, in_short(found), report_sections(found))
    write_page(out, text)
    facts = report_json(found) | {"page": str(out), "bytes": len(text.encode())}
    if as_json:
        print_json(facts)
    else:
        shown = (
            "subscribers",
            "on_time_share",
            "earning",
            "offered",
            "dropped",
            "prediction_off_mean",
            "predictions",
            "page",
        )
        print_facts("", {name.replace("_", " "): facts[name] for name in shown})
