"""The summary of a run of the pipeline, kept beside the tables as `run.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from betimes.pipeline.tables import shapes as tables
from betimes.pipeline.tables.files import TablesError, read_arrow
from betimes.pipeline.telemetry.input import TelemetryInput
from betimes.pipeline.telemetry.survey import Since, Survey

FILE = "run.json"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The rows that were read, the rows set aside with their reasons, and the totals."""

    telemetry: str
    files: int
    is_unfinished: bool
    over_s: float  # the longest span of any broker's rows
    last_s: float  # the latest row, on the clock of the broker that wrote it
    brokers: int
    rows: Mapping[str, int]  # of each table
    quarantined: Mapping[str, int]  # by reason
    open_subscriptions: int
    publishers: int
    links: int
    wanted: float
    on_time: float
    earning: float
    took_s: float

    @property
    def on_time_share(self) -> float | None:
        """Return the share of all wanted events that arrived in time."""
        return self.on_time / self.wanted if self.wanted else None


def write_facts(
    folder: Path, telemetry: TelemetryInput, seen: Survey, since: Since, took_s: float
) -> RunFacts:
    """Sum up the tables of a run and write the summary beside them."""
    reliability = read_arrow(tables.RELIABILITY, folder)
    reasons = read_arrow(tables.QUARANTINE, folder, ["reason"])["reason"].value_counts().to_pylist()
    until_s = read_arrow(tables.SUBSCRIPTIONS, folder, ["until_s"])["until_s"]
    rows = {
        table.name: sum(pq.read_metadata(path).num_rows for path in (folder / table.name).rglob("*.parquet"))
        for table in tables.TABLES.values()
        if table.is_filled
    }
    facts = RunFacts(
        telemetry=str(telemetry.directory),
        files=telemetry.files,
        is_unfinished=telemetry.is_unfinished,
        over_s=seen.over_s(since),
        last_s=max(seen.last_s.values(), default=0.0),
        brokers=len(seen.brokers),
        rows=rows,
        quarantined={
            each["values"]: each["counts"] for each in sorted(reasons, key=lambda each: each["values"])
        },
        open_subscriptions=until_s.null_count,
        publishers=rows[tables.PUBLISHERS.name],
        links=rows[tables.LINKS.name],
        took_s=took_s,
        **{
            name: float(pc.sum(reliability[name]).as_py() or 0.0) for name in ("wanted", "on_time", "earning")
        },
    )
    # Values that differ from run to run are not kept: two runs over the same telemetry write the same.
    kept = asdict(facts) | {"version": VERSION}
    del kept["took_s"]
    (folder / FILE).write_text(json.dumps(kept, indent=2, allow_nan=False) + "\n")
    return facts


def read_facts(folder: Path) -> RunFacts:
    """Return the summary of a run."""
    path = folder / FILE
    try:
        kept = json.loads(path.read_text())
        if kept.pop("version") != VERSION:
            raise TablesError(f"{path}: is of another version\nhint: run betimes pipeline again")
        return RunFacts(**kept, took_s=0.0)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise TablesError(f"{path}: cannot be read ({error})\nhint: run betimes pipeline again") from error


def facts_for_json(facts: RunFacts) -> dict[str, Any]:
    """Return the facts that --json prints."""
    return asdict(facts) | {"on_time_share": facts.on_time_share}
