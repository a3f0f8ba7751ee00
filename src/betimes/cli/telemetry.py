"""`betimes telemetry`: summarise a directory of telemetry files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json, print_notice, print_table

if TYPE_CHECKING:
    import pyarrow as pa

LINKS_SHOWN = 20

EXAMPLES = examples(
    "betimes simulate examples/city.toml --telemetry out/city",
    "betimes telemetry out/city",
    "betimes telemetry out/city --json",
)


def telemetry_command(
    directory: Annotated[Path, typer.Argument(help="The telemetry directory.", metavar="DIR")],
    as_json: JsonOption = False,
) -> None:
    """Summarise telemetry: messages wanted, delivered and dropped, and link speeds.

    Use it for a quick look without Spark; `betimes pipeline run` computes the full tables.
    """
    from betimes.telemetry.files import KINDS, check_directory, is_unfinished, read_table

    check_directory(directory, "betimes simulate --telemetry writes one")
    tables = {kind: read_table(directory, kind) for kind in KINDS}
    facts = telemetry_facts(tables) | {"unfinished": is_unfinished(directory)}
    if facts["unaccounted"] > 0:
        print_notice(
            f"{directory}: {facts['unaccounted']} messages are unaccounted for; "
            "a broker that is killed loses records that it has not written"
        )
    if facts["unfinished"]:
        print_notice(f"{directory}: the writer was killed or is still running; the totals do not add up yet")
    if as_json:
        print_json(facts)
        return
    whole = {
        name: facts[name]
        for name in ("wanted", "in_time", "unaccounted", "earning", "age_s_mean", "wait_s_mean")
    }
    print_facts(str(directory), {name.replace("_", " "): value for name, value in whole.items()})
    print_table("records", ["kind", "rows"], list(facts["records"].items()), numbers=["rows"])
    if facts["drops"]:
        print_table("dropped", ["reason", "subscribers who missed it"], list(facts["drops"].items()))
    columns = ["link", "transfers", "s_per_kb_mean", "s_per_kb_sd"]
    slowest = sorted(facts["links"], key=lambda link: -link["s_per_kb_mean"])[:LINKS_SHOWN]
    shown = "links" if len(slowest) == len(facts["links"]) else f"the {LINKS_SHOWN} slowest links"
    print_table(
        shown,
        ["link", "transfers", "mean s/KB", "deviation"],
        [[each[c] for c in columns] for each in slowest],
    )


def telemetry_facts(tables: dict[str, pa.Table]) -> dict[str, Any]:
    """Return what --json prints, from one table per kind of record."""
    import pyarrow.compute as pc

    def standing_for(table: pa.Table, column: str | None = None) -> pa.Array:
        """Return the weight of rows: a sampled row stands for 1 / share rows."""
        one_each = 1.0 if column is None else table[column]
        return pc.divide(one_each, table["share"])

    published, delivered = tables["published"], tables["delivered"]
    missed = standing_for(tables["dropped"], "subscribers")
    dropped = tables["dropped"].set_column(
        tables["dropped"].schema.get_field_index("subscribers"), "subscribers", missed
    )
    by_reason = dropped.group_by("reason").aggregate([("subscribers", "sum")]).sort_by("reason")
    facts = {
        "records": {kind: table.num_rows for kind, table in tables.items()},
        "wanted": round(pc.sum(standing_for(published, "wanted")).as_py() or 0),
        "in_time": round(pc.sum(standing_for(delivered)).as_py() or 0),
        "earning": pc.sum(standing_for(delivered, "price")).as_py() or 0.0,
        "age_s_mean": pc.mean(delivered["age_s"]).as_py(),
        "wait_s_mean": pc.mean(tables["sent"]["wait_s"]).as_py(),
        "drops": dict(
            zip(
                by_reason["reason"].to_pylist(),
                map(round, by_reason["subscribers_sum"].to_pylist()),
                strict=True,
            )
        ),
        "links": link_speeds(tables["received"]),
    }
    facts["unaccounted"] = facts["wanted"] - facts["in_time"] - sum(facts["drops"].values())
    return facts


def link_speeds(received: pa.Table) -> list[dict[str, Any]]:
    """Return mean and deviation of the time per KB for each link."""
    import pyarrow.compute as pc

    speed = pc.divide(received["transfer_s"], received["size_kb"])
    by_link = (
        received.append_column("s_per_kb", speed)
        .group_by(["neighbour", "broker"])
        .aggregate([("s_per_kb", "count"), ("s_per_kb", "mean"), ("s_per_kb", "stddev")])
        .sort_by([("neighbour", "ascending"), ("broker", "ascending")])
    )
    return [
        {
            "link": f"{row['neighbour']}->{row['broker']}",
            "transfers": row["s_per_kb_count"],
            "s_per_kb_mean": row["s_per_kb_mean"],
            "s_per_kb_sd": row["s_per_kb_stddev"],
        }
        for row in by_link.to_pylist()
    ]
