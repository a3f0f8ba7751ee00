"""`betimes match`: match stored events with many subscriptions, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betimes.model.errors import SettingError
from betimes.terminal.progress import progress_bar
from betimes.terminal.spark_options import MasterOption, RemoteOption, open_spark
from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json, print_notice, print_table

if TYPE_CHECKING:
    from betimes.pipeline.match.files import MatchFacts
    from betimes.pipeline.match.plan import MatchPlan

EXAMPLES = examples(
    "betimes match --events events.parquet --subscriptions subscriptions.csv --out out/match",
    "betimes match --events out/tables/current/events --subscriptions subs.jsonl --out out/match --counts",
    "betimes match --events events/ --subscriptions subscriptions/ --explain",
    "betimes match --events /shared/events --subscriptions /shared/subs --out /shared/match --master spark://head:7077",
)

INDEX_MB = 512


EventsOption = Annotated[
    str,
    typer.Option(
        "--events",
        help="Events: Parquet, CSV or JSON lines, a file or a folder. `event` (or `origin` and `number`) "
        "names an event, `topic` is its topic; every other column is an attribute, or `content` "
        "holds all of them as JSON.",
        metavar="PLACE",
    ),
]
SubscriptionsOption = Annotated[
    str,
    typer.Option(
        "--subscriptions",
        help="Subscriptions, in the same formats: `subscriber`, `filter` (a text), `topic` (a pattern), and "
        "columns such as `speed>=`, `speed<=` and `kind=` for boxes.",
        metavar="PLACE",
    ),
]
OutOption = Annotated[Path | None, typer.Option("--out", help="The folder for the result.", metavar="DIR")]
CountsOption = Annotated[
    bool, typer.Option("--counts", help="Only the number of matching subscribers of each event.")
]
PairsOption = Annotated[
    bool, typer.Option("--pairs", help="One row for each event and subscriber, not a list for each event.")
]
IdOption = Annotated[
    list[str] | None,
    typer.Option("--id", help="A column that names an event. May be given several times."),
]
IndexOption = Annotated[
    float,
    typer.Option("--index-mb", help="The largest index of a worker; above it, subscriptions are divided."),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Print the plan, and run nothing.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing result.")]


def match_command(
    events: EventsOption,
    subscriptions: SubscriptionsOption,
    out: OutOption = None,
    counts: CountsOption = False,
    pairs: PairsOption = False,
    event_id: IdOption = None,
    index_mb: IndexOption = INDEX_MB,
    explain: ExplainOption = False,
    overwrite: OverwriteOption = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Match stored events with subscriptions, on Spark.

    The result is one row for each event that matches a subscription, with the list of its subscribers, in
    DIR/matches. Rows that cannot be read go to DIR/quarantine.parquet with reason and place. A small set of
    subscriptions is one index on every worker; a large one is divided into cells by topic and attributes.
    --explain prints which.
    """
    from betimes.pipeline.match.files import MatchRequest, check_out, explain_files, match_files
    from betimes.pipeline.match.forms import Form
    from betimes.pipeline.match.plan import MatchSettings
    from betimes.pipeline.rows.sources import check_rows_place

    if counts and pairs:
        raise SettingError("--pairs", pairs, "cannot be combined with --counts", "pass one of them")
    if out is None and not explain:
        raise SettingError("--out", "", "is missing", "name a folder for the result, or pass --explain")
    form = Form.COUNTS if counts else Form.PAIRS if pairs else Form.LISTS
    request = MatchRequest(
        events=events,
        subscriptions=subscriptions,
        out=out or Path(),
        form=form,
        ids=tuple(event_id or ()),
        settings=MatchSettings(index_mb_max=index_mb),
        overwrite=overwrite,
    )
    for place in (events, subscriptions):
        check_rows_place(place)
    if not explain:
        check_out(request.out, overwrite=overwrite)
    spark = open_spark("betimes match", master, remote)
    if explain:
        show_plan(explain_files(spark, request), as_json=as_json)
        return
    with progress_bar(f"{events} with {subscriptions}") as advance:
        facts = match_files(spark, request, advance)
    show_match(facts, request.out, as_json=as_json)


def show_plan(plan: MatchPlan, *, as_json: bool) -> None:
    """Print the plan of a match."""
    facts = plan.facts()
    if as_json:
        print_json(facts)
        return
    groups = facts.pop("groups", [])
    tried: dict[str, Any] = facts.pop("work_s_of_ways_tried", {})
    print_facts("plan", {name.replace("_", " "): value for name, value in facts.items()})
    if groups:
        rows = [(", ".join(group["divided_by"]) or "not divided", group["cells"]) for group in groups]
        print_table("cells: an event goes to one of each group", ["by", "cells"], rows, numbers=["cells"])
        ways = sorted(tried.items(), key=lambda item: float(item[1]))
        print_table(
            "divisions considered", ["by", "expected work in s"], ways, numbers=["expected work in s"]
        )


def show_match(facts: MatchFacts, out: Path, *, as_json: bool) -> None:
    """Print the result of a match, and a notice about rows in quarantine."""
    if facts.set_aside:
        count = f"{sum(facts.set_aside.values()):,}"
        place = out / "quarantine.parquet"
        print_notice(f"quarantine: {count} rows that cannot be read, with reason and place, in {place}")
    if as_json:
        print_json(facts.as_dict())
        return
    shown = {
        "events": facts.plan.events,
        "subscriptions": facts.plan.subscriptions,
        "events that match": facts.wanted,
        "pairs of event and subscriber": facts.pairs,
        "way": facts.plan.facts()["way"],
        "took s": facts.took_s,
        "events a second": (facts.plan.events or 0) / max(facts.took_s, 1e-9),
    }
    print_facts(str(out / "matches"), shown)
    if facts.set_aside:
        print_table("quarantine", ["reason", "rows"], list(facts.set_aside.items()), numbers=["rows"])
