"""A match from two tables to a folder with the answer and the rows that were set aside.

`OUT/matches` holds the answer as Parquet, `OUT/quarantine.parquet` the unreadable rows, with reason and
place, and `OUT/summary.json` the plan and the counts. The answer is moved to its place when it is complete.
"""

from __future__ import annotations

import json
import math
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from betimes.model.errors import BetimesError
from betimes.pipeline.match.api import MatchInput, check_some, divided_frame, match_input, planned
from betimes.pipeline.match.forms import ANSWER, Form
from betimes.pipeline.match.plan import MatchPlan, MatchSettings
from betimes.pipeline.match.shared_set import set_for_job
from betimes.pipeline.match.tasks import WRITTEN
from betimes.pipeline.rows.sources import RowSource, open_rows
from betimes.pipeline.rows.subscription_set import SubscriptionSet
from betimes.pipeline.rows.subscriptions import QUARANTINE
from betimes.pipeline.spark.lazy import F, SparkSession
from betimes.pipeline.spark.watched_jobs import Progress, watched
from betimes.pipeline.tables.parquet import check_writable, write_table

MATCHES, SET_ASIDE, SUMMARY = "matches", "quarantine.parquet", "summary.json"
UNREADABLE = "event that cannot be read"


class MatchError(BetimesError):
    """A match that cannot be written: names the directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRequest:
    """What to match, and where the answer goes."""

    events: str
    subscriptions: str
    out: Path
    form: Form = Form.LISTS
    ids: Sequence[str] = ()
    settings: MatchSettings = field(default_factory=MatchSettings)
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCounts:
    """What was written: events that a subscriber wants, pairs, and events that cannot be read."""

    wanted: int
    pairs: int
    unreadable: int
    # share of the events that the busiest task had; None where tasks do not report it
    task_share_max: float | None = None
    tasks_processor_s: float | None = None  # of the tasks that matched and wrote, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchFacts(MatchCounts):
    """The counts of a match, its plan, and the rows set aside."""

    plan: MatchPlan
    form: Form
    set_aside: dict[str, int]  # rows by reason
    took_s: float

    def as_dict(self) -> dict[str, Any]:
        """Return the facts for JSON."""
        return {
            "form": self.form.value,
            "events": self.plan.events,
            "subscriptions": self.plan.subscriptions,
            "wanted_events": self.wanted,
            "pairs": self.pairs,
            "unreadable_events": self.unreadable,
            "set_aside": self.set_aside,
            "task_share_max": self.task_share_max,
            "tasks_processor_s": self.tasks_processor_s,
            "took_s": round(self.took_s, 3),
            "plan": self.plan.facts(),
        }


def check_out(out: Path, *, overwrite: bool) -> None:
    """Raise a BetimesError if the answer cannot be written there."""
    there = [name for name in (MATCHES, SET_ASIDE, SUMMARY) if (out / name).exists()]
    if there and not overwrite:
        hint = "name another folder, or pass --overwrite"
        raise MatchError(f"{out}: already holds {' and '.join(there)}\nhint: {hint}")
    check_writable(out)


@contextmanager
def staged_answer(out: Path) -> Iterator[Path]:
    """Yield a folder to write the answer into; if the block succeeds, it replaces the previous answer."""
    out.mkdir(parents=True, exist_ok=True)
    staging, place = out.absolute() / f".{MATCHES}-{uuid.uuid4().hex}", out / MATCHES
    try:
        yield staging
        if place.exists():
            shutil.rmtree(place)
        staging.replace(place)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        with suppress(OSError):  # it existed before, and is not empty
            out.rmdir()
        raise


def explain_files(spark: SparkSession, request: MatchRequest) -> MatchPlan:
    """Return how a match would be done, without doing it."""
    wanted, quarantine, plan = planned(_opened(spark, request), request.settings)
    check_some(wanted, quarantine)
    return plan


def _opened(spark: SparkSession, request: MatchRequest) -> MatchInput:
    events, subscriptions = open_rows(spark, request.events), open_rows(spark, request.subscriptions)
    return match_input(events, subscriptions, request.form, request.ids)


def match_files(spark: SparkSession, request: MatchRequest, progress: Progress | None = None) -> MatchFacts:
    """Match two tables, write the answer, and return the counts."""
    check_out(request.out, overwrite=request.overwrite)
    began_s = time.monotonic()
    tables = _opened(spark, request)
    wanted, quarantine, plan = planned(tables, request.settings)
    check_some(wanted, quarantine)
    with staged_answer(request.out) as staging:
        if wanted is None:
            counts, unreadable = _write_divided(tables, plan, staging, progress)
        else:
            counts, unreadable = _write_whole(tables, wanted, staging, progress)
    bad = pa.concat_tables([quarantine, unreadable])
    write_table(bad, request.out / SET_ASIDE)
    facts = MatchFacts(
        plan=plan,
        form=request.form,
        set_aside=dict(Counter(bad["reason"].to_pylist())),
        took_s=time.monotonic() - began_s,
        **asdict(counts),
    )
    (request.out / SUMMARY).write_text(json.dumps(facts.as_dict(), indent=2) + "\n")
    return facts


def _write_whole(
    tables: MatchInput, wanted: SubscriptionSet, folder: Path, progress: Progress | None
) -> tuple[MatchCounts, pa.Table]:
    """Let tasks write a file each, and keep the files of successful attempts."""
    folder.mkdir()
    events: RowSource = tables.events
    with set_for_job(events.spark, wanted) as place:
        task = tables.happened.task(place, wanted.attributes)
        frame = events.handed_out(task.columns).mapInArrow(partial(task.to_file, folder), WRITTEN)
        reports = watched(events.spark, frame.toArrow, events.tasks, progress, "the match").to_pylist()
    files = {row["file"] for row in reports if row["file"]}
    missing = sorted(name for name in files if not (folder / name).exists())
    if missing:
        hint = "name a folder on a file system that this machine and all workers see under the same path"
        raise MatchError(
            f"{folder.parent}: a worker wrote {missing[0]} there, but it is not here\nhint: {hint}"
        )
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    if not files:  # Spark cannot read a folder without any file
        write_table(task.schema.empty_table(), folder / "part-0.parquet")
    rows = [each for row in reports for each in json.loads(row["listed"])]
    counts = MatchCounts(
        **{name: sum(row[name] for row in reports) for name in ("wanted", "pairs", "unreadable")},
        task_share_max=max((row["events"] for row in reports), default=0) / max(events.rows, 1),
        tasks_processor_s=math.fsum(row["processor_s"] for row in reports),
    )
    return counts, _unreadable_rows(rows)


def _unreadable_rows(rows: Sequence[dict[str, Any]]) -> pa.Table:
    named = [{"name": None, "reason": UNREADABLE} | row for row in rows]
    return pa.Table.from_pylist(named, schema=QUARANTINE)


def _write_divided(
    tables: MatchInput, plan: MatchPlan, folder: Path, progress: Progress | None
) -> tuple[MatchCounts, pa.Table]:
    """Let Spark write what the cells found, and count it."""
    spark, form = tables.events.spark, tables.happened.form
    frame = divided_frame(tables, plan)

    def write() -> None:
        frame.write.option("compression", "zstd").parquet(str(folder))

    watched(spark, write, plan.tasks, progress, "the match")
    name = ANSWER[form]
    found = spark.read.schema(frame.schema).parquet(str(folder))
    size = {Form.LISTS: F.size(name), Form.COUNTS: F.col(name), Form.PAIRS: F.lit(1)}[form]
    is_read = F.col(name).isNotNull()
    ids = [F.col(f"`{each}`") for each in tables.happened.shape.ids]
    events = F.count_distinct(F.when(is_read, F.struct(*ids))) if form is Form.PAIRS else F.count(name)
    counted = found.agg(
        events.alias("wanted"), F.sum(F.when(is_read, size)).alias("pairs"), F.count_if(~is_read).alias("bad")
    ).first()
    assert counted is not None
    lost = found.filter(~is_read).limit(1000).toArrow().to_pylist() if counted["bad"] else []
    named = [":".join(str(row[each]) for each in tables.happened.shape.ids) for row in lost]
    about = {"source": tables.events.name, "row": None, "detail": "its content is no JSON object"}
    counts = MatchCounts(wanted=counted["wanted"], pairs=counted["pairs"] or 0, unreadable=counted["bad"])
    return counts, _unreadable_rows([about | {"name": each} for each in named])
