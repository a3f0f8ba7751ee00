"""`betimes replay`: predict what stored events would have brought to other subscriptions, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from betimes.cli.match import INDEX_MB, IndexOption, OverwriteOption
from betimes.cli.pipeline import WrittenTables
from betimes.terminal.progress import progress_bar
from betimes.terminal.spark_options import MasterOption, RemoteOption, open_spark
from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json, print_notice, print_table

if TYPE_CHECKING:
    from betimes.pipeline.replay.replay import ReplayFacts

SHOWN_MAX = 20

EXAMPLES = examples(
    "betimes pipeline run --telemetry out/live --tables out/tables",
    "betimes replay --tables out/tables --subscriptions subs.csv --out out/replay",
    "betimes replay --tables out/tables --subscriptions subs.csv --out out/replay --overwrite --json",
)


def replay_command(
    tables: WrittenTables,
    subscriptions: Annotated[
        str,
        typer.Option(
            "--subscriptions",
            help="Parquet, CSV or JSON lines, as for `betimes match`, with `home` (the subscriber's broker) "
            "and optionally `delay_s_max` and `price`.",
            metavar="PLACE",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder for the result.", metavar="DIR")],
    index_mb: IndexOption = INDEX_MB,
    overwrite: OverwriteOption = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay stored events to subscriptions that did not exist: what would have arrived, and when.

    DIR/matches has a row for each event and subscriber: when the event was published, when it would have
    arrived, and the probability that it was in time, from measured waiting times and link speeds.
    DIR/subscribers.parquet has the totals. The result ignores the load that these subscriptions would have
    added; `betimes twin --add-subscriber` includes it.
    """
    from betimes.pipeline.match.files import check_out
    from betimes.pipeline.match.plan import MatchSettings
    from betimes.pipeline.replay.replay import ReplayRequest, replay
    from betimes.pipeline.rows.sources import check_rows_place
    from betimes.pipeline.tables.files import current_tables

    request = ReplayRequest(
        tables=tables,
        subscriptions=subscriptions,
        out=out,
        settings=MatchSettings(index_mb_max=index_mb),
        overwrite=overwrite,
    )
    current_tables(tables)
    check_rows_place(subscriptions)
    check_out(out, overwrite=overwrite)
    spark = open_spark("betimes replay", master, remote)
    with progress_bar(f"{tables} to {subscriptions}") as advance:
        facts = replay(spark, request, advance)
    show_replay(facts, out, as_json=as_json)


def show_replay(facts: ReplayFacts, out: Path, *, as_json: bool) -> None:
    """Print the on-time share of each subscriber."""
    if facts.set_aside:
        place = out / "quarantine.parquet"
        print_notice(f"quarantine: {facts.set_aside:,} subscriptions, with reason and place, in {place}")
    shown = facts.as_dict()
    if as_json:
        print_json(shown)
        return
    left_out = ("plan", "set_aside")
    print_facts(str(out), {name.replace("_", " "): shown[name] for name in shown if name not in left_out})
    rows = sorted(facts.subscribers.to_pylist(), key=lambda row: -row["wanted"])
    columns = ("subscriber", "home", "wanted", "on_time_share", "delay_s_mean", "earning", "offered")
    print_table(
        f"subscribers with most matches, {min(SHOWN_MAX, len(rows))} of {len(rows):,}",
        [name.replace("_", " ") for name in columns],
        [[row[name] for name in columns] for row in rows[:SHOWN_MAX]],
        numbers=[name.replace("_", " ") for name in columns[2:]],
    )
