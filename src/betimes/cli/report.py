"""What happened in this network? `betimes report` makes one page of it, for people who would rather look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from betimes.cli.predict import model_named
from betimes.terminal.progress import waiting
from betimes.terminal.terminal import JsonOption, print_facts, print_json

EXAMPLES = """\
[bold]Examples[/bold]

betimes simulate examples/city.toml --telemetry out/city

betimes pipeline run --telemetry out/city --tables out/tables

betimes report --tables out/tables --out out/report.html
"""


def report_command(
    tables: Annotated[
        Path,
        typer.Option("--tables", help="What `betimes pipeline run` learned of a network.", metavar="DIR"),
    ],
    out: Annotated[Path, typer.Option("--out", help="The page to write.", metavar="FILE")] = Path(
        "report.html"
    ),
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Predict by this model: wait, mm1 or gg1, as `betimes predict` does. "
            "Default: what a twin foretold, if that lies with the tables; else wait.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make one page of what was learned: on-time shares, where the time goes, drops, earnings, links.

    The page is one file that needs no network, and reads in dark and in light. Subscribers' shares are shown
    beside what was predicted of them: by a twin beforehand, if that lies with the tables; else from the same
    tables, as if brokers served first come, first served.
    """
    chosen = None if model is None else model_named(model)
    from betimes.reporting.page import check_page_place, page_text, write_page
    from betimes.reporting.report_sections import findings_in, in_short, report_json, report_sections

    check_page_place(out)
    with waiting(f"reading {tables}"):
        found = findings_in(tables, chosen)
    with waiting("drawing"):
        about = f"From {found.run.telemetry}, {found.run.over_s:,.0f} s of it."
        text = page_text("What happened in this network", about, in_short(found), report_sections(found))
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
