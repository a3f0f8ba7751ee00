"""`betimes pipeline`: compute tables from telemetry, on Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from betimes.pipeline.tables.shapes import TABLES, tables_page
from betimes.terminal.progress import progress_bar
from betimes.terminal.spark_options import MasterOption, RemoteOption, open_spark
from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json, print_notice, print_table

if TYPE_CHECKING:
    from betimes.pipeline.telemetry.run_facts import RunFacts

QUARANTINE_NOTICE = "quarantine: {rows} bad rows, each with its reason, in {place}"

RUN_EXAMPLES = examples(
    "betimes simulate examples/city.toml --telemetry out/city",
    "betimes pipeline run --telemetry out/city --tables out/tables",
    "betimes pipeline run --telemetry out/live --tables out/tables --since 15m --json",
    "betimes pipeline run --telemetry /shared/live --tables /shared/tables --master spark://head:7077",
)
TABLES_EXAMPLES = examples(
    "betimes pipeline tables",
)

WrittenTables = Annotated[
    Path, typer.Option("--tables", help="The tables that `betimes pipeline run` wrote.", metavar="DIR")
]

pipeline_app = typer.Typer(
    name="pipeline",
    help="Compute distributions, matches and measured on-time shares from telemetry, on Spark.",
    epilog=RUN_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@pipeline_app.command("run", epilog=RUN_EXAMPLES)
def run_command(
    telemetry: Annotated[
        Path,
        typer.Option("--telemetry", help="The telemetry of brokers or of the simulator.", metavar="DIR"),
    ],
    tables: Annotated[
        Path, typer.Option("--tables", help="The directory for the tables; replaced when the job ends.")
    ],
    master: MasterOption = None,
    remote: RemoteOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Use only the last period of each broker, such as 15m, or rows after 2026-03-01T12:00.",
        ),
    ] = None,
    broker: Annotated[
        list[str] | None,
        typer.Option(
            "--broker",
            help="A broker of the network. Name each one, if some write no telemetry. "
            "Rows that name other brokers go to quarantine. Default: the brokers that wrote telemetry.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute tables from telemetry: links, brokers, publishers, matches and on-time shares.

    Run it before `betimes report`, `predict --tables`, `twin` and `replay`. Bad rows go to quarantine with
    their reason. A second run on the same telemetry gives the same tables; a job that fails leaves the tables
    of the last one.
    """
    from betimes.pipeline.telemetry.job import PipelineSettings, check_places, read_brokers, run_pipeline
    from betimes.pipeline.telemetry.survey import read_since

    settings = PipelineSettings(since=read_since(since), brokers=read_brokers(broker or ()))
    check_places(telemetry, tables)
    spark = open_spark("betimes pipeline", master, remote)
    with progress_bar(f"from {telemetry} to tables") as advance:
        facts = run_pipeline(spark, telemetry, tables, settings, advance)
    show_run(facts, tables, as_json=as_json)


def show_run(facts: RunFacts, tables: Path, *, as_json: bool) -> None:
    """Print the result of a job, and notices about bad rows and unfinished telemetry."""
    from betimes.pipeline.telemetry.run_facts import facts_for_json

    shown = facts_for_json(facts)
    if facts.quarantined:
        place = tables / "current" / "quarantine"
        print_notice(QUARANTINE_NOTICE.format(rows=f"{sum(facts.quarantined.values()):,}", place=place))
    if facts.is_unfinished:
        print_notice(
            f"{facts.telemetry}: brokers still write there, or were killed; unfinished rows are left out"
        )
    if as_json:
        print_json(shown)
        return
    names = ("files", "brokers", "links", "publishers", "open_subscriptions", "over_s")
    results = ("wanted", "on_time", "on_time_share", "earning", "took_s")
    print_facts(str(tables / "current"), {name.replace("_", " "): shown[name] for name in (*names, *results)})
    print_table("tables", ["table", "rows"], list(facts.rows.items()), numbers=["rows"])
    if facts.quarantined:
        print_table("quarantine", ["reason", "rows"], list(facts.quarantined.items()), numbers=["rows"])


@pipeline_app.command("tables", epilog=TABLES_EXAMPLES)
def tables_command(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference page with all columns.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the tables of the pipeline, and the meaning of a row of each."""
    if markdown:
        sys.stdout.write(tables_page())
    elif as_json:
        print_json(
            {
                table.name: {
                    "row": table.row,
                    "divided_by": table.divided_by,
                    "columns": {column.name: column.type for column in table.columns},
                }
                for table in TABLES.values()
            }
        )
    else:
        rows = [(table.name, table.row, table.source or "-") for table in TABLES.values()]
        print_table("tables", ["table", "a row is", "from telemetry"], rows)
