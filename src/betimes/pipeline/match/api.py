"""Matching events with subscriptions: which subscribers want which event.

`match` takes frames or tables and returns a frame; `match_files` writes Parquet files straight from the
tasks. Both ask `plan.py` how: one index for all subscriptions, or cells. A subscriber with several
subscriptions to an event is listed once.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from betimes.pipeline.match import exchange
from betimes.pipeline.match.forms import ANSWER, Form, answer_schema
from betimes.pipeline.match.plan import (
    MB,
    MatchPlan,
    MatchSettings,
    Sample,
    divided_plan,
    tasks_for,
)
from betimes.pipeline.match.tasks import MatchTask, SetPlace
from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.sources import RowSource, frame_rows, read_rows
from betimes.pipeline.rows.subscription_set import SubscriptionSet, save_set
from betimes.pipeline.rows.subscriptions import (
    QUARANTINE,
    SUBSCRIBER,
    SubscriptionsError,
    SubscriptionShape,
    read_subscriptions,
)
from betimes.pipeline.spark.lazy import DataFrame, F, SparkSession
from betimes.pipeline.spark.session import cores, is_local, is_remote

SAMPLE_ROWS = 20_000  # of subscriptions, and of events
QUARANTINED_MAX = 100_000  # rows that are kept individually
Tables = Any  # a frame, or a source of rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The answer, as a lazy frame; the rows that were set aside; the plan."""

    frame: DataFrame
    quarantine: pa.Table
    plan: MatchPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The beginning of both kinds of matching: tables, and the roles of their columns."""

    events: RowSource
    event_shape: EventShape
    subscriptions: RowSource
    subscription_shape: SubscriptionShape
    form: Form
    schema: pa.Schema


def match(
    events: Tables,
    subscriptions: Tables,
    *,
    form: Form = Form.LISTS,
    ids: Sequence[str] = (),
    settings: MatchSettings | None = None,
) -> Matching:
    """Return which subscribers want which event; both tables are frames, or opened by `rows/sources.py`."""
    prepared = prepare(events, subscriptions, form, ids)
    wanted, quarantine, plan = planned(prepared, settings or MatchSettings())
    if wanted is None:
        return Matching(frame=divided_frame(prepared, plan), quarantine=quarantine, plan=plan)
    task = whole_task(prepared, wanted)
    given = prepared.events.handed_out(task.columns)
    frame = given.mapInArrow(task.to_spark, _ddl(prepared.schema))
    return Matching(frame=frame, quarantine=quarantine, plan=plan)


def prepare(events: Tables, subscriptions: Tables, form: Form, ids: Sequence[str]) -> Prepared:
    """Return both tables with the roles of their columns, or raise an error about them."""
    happened = events if isinstance(events, RowSource) else frame_rows(events, "events")
    wanted = (
        subscriptions if isinstance(subscriptions, RowSource) else frame_rows(subscriptions, "subscriptions")
    )
    shape = EventShape.of(happened.schema, ids, happened.name)
    named = [happened.schema.field(name).remove_metadata() for name in shape.ids]
    schema = answer_schema(named, form, wanted.schema.field(SUBSCRIBER).type)
    return Prepared(
        events=happened,
        event_shape=shape,
        subscriptions=wanted,
        subscription_shape=SubscriptionShape.of(wanted.schema, wanted.name),
        form=form,
        schema=schema,
    )


def planned(
    prepared: Prepared, settings: MatchSettings
) -> tuple[SubscriptionSet | None, pa.Table, MatchPlan]:
    """Return the set of all subscriptions, if the plan has one index; the rows set aside; and the plan."""
    subscriptions, events = prepared.subscriptions, prepared.events
    columns, shape = prepared.subscription_shape.columns, prepared.subscription_shape
    rows = read_rows(subscriptions, columns, SAMPLE_ROWS)
    parsed, bad = read_subscriptions(rows, shape, subscriptions.name)
    sampled = SubscriptionSet(parsed)
    bytes_each = max(sampled.index.size_bytes / max(len(parsed), 1), 1.0)
    expected_mb = subscriptions.rows * bytes_each / MB
    if expected_mb <= settings.index_mb_max:
        if subscriptions.rows > SAMPLE_ROWS:
            parsed, bad = read_subscriptions(read_rows(subscriptions, columns), shape, subscriptions.name)
            sampled = SubscriptionSet(parsed)
        if not len(parsed) and bad.num_rows:
            first = bad.slice(0, 1).to_pylist()[0]
            problem = f"{subscriptions.name}: {first['reason']}: {first['detail']}"
            raise SubscriptionsError(
                f"{problem}\nhint: none of its {bad.num_rows:,} subscriptions can be read"
            )
        plan = MatchPlan(
            subscriptions=subscriptions.rows,
            events=events.rows,
            index_mb=sampled.index.size_bytes / MB,
            index_mb_max=settings.index_mb_max,
        )
        return sampled, bad, plan
    happened = read_rows(events, prepared.event_shape.needed(sampled.attributes), SAMPLE_ROWS)
    none = pa.RecordBatch.from_pylist([], schema=happened.schema)
    batches = happened.combine_chunks().to_batches() or [none]
    sample = Sample(
        sampled=parsed,
        subscriptions=subscriptions.rows,
        bytes_each=bytes_each,
        happened=event_columns(batches[0], prepared.event_shape, sampled.attributes),
        events=events.rows,
    )
    tasks = tasks_for(cores(events.spark), settings, expected_mb)
    plan = divided_plan(sample, settings, tasks, is_repeated=_is_repeated(subscriptions))
    return None, _bad_rows(prepared), plan


def _bad_rows(prepared: Prepared) -> pa.Table:
    """Return the subscriptions that cannot be read; tasks find them."""
    source = prepared.subscriptions
    task = partial(exchange.bad_rows, source.reader, prepared.subscription_shape)
    given = source.handed_out(prepared.subscription_shape.columns)
    found = given.mapInArrow(task, _ddl(QUARANTINE)).limit(QUARANTINED_MAX).toArrow()
    return found.cast(QUARANTINE)


def _ddl(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def whole_task(prepared: Prepared, wanted: SubscriptionSet) -> MatchTask:
    """Return the task for a plan with one index, which is written where tasks find it."""
    return MatchTask(
        place=placed_set(prepared.events.spark, wanted),
        reader=prepared.events.reader,
        shape=prepared.event_shape,
        form=prepared.form,
        columns=tuple(prepared.event_shape.needed(wanted.attributes)),
        schema=prepared.schema,
    )


def placed_set(spark: SparkSession, wanted: SubscriptionSet) -> SetPlace:
    """Write a set where all workers find it: on this machine, or sent to theirs by Spark."""
    folder = Path(tempfile.mkdtemp(prefix="betimes-match-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"subscriptions-{uuid.uuid4().hex}.set"
    save_set(wanted, path)
    if is_remote(spark):
        spark.addArtifacts(str(path), file=True)
    elif is_local(spark.sparkContext.master or ""):
        return SetPlace(name=str(path), is_sent=False)
    else:
        spark.sparkContext.addFile(str(path))
    return SetPlace(name=path.name, is_sent=True)


def divided_frame(prepared: Prepared, plan: MatchPlan) -> DataFrame:
    """Return the answer of a divided match: blocks meet in tasks, then an event's answers are joined."""
    if prepared.form is Form.COUNTS and plan.is_repeated:
        # lists first: several cells may find the same subscriber
        events, subscriptions, ids = prepared.events, prepared.subscriptions, prepared.event_shape.ids
        lists = divided_frame(prepare(events, subscriptions, Form.LISTS, ids), plan)
        listed, count = ANSWER[Form.LISTS], ANSWER[Form.COUNTS]
        return lists.withColumn(count, F.size(listed).cast("bigint")).drop(listed)
    events, subscriptions = prepared.events, prepared.subscriptions
    handout = exchange.Handout.of(plan.shares)
    shape = prepared.subscription_shape
    # those of filters are known to tasks only
    used = prepared.event_shape.columns if shape.filter else (*shape.lows, *shape.highs, *shape.equals)
    needed = tuple(prepared.event_shape.needed(frozenset(used)))
    packing = exchange.SubscriptionPacking(
        reader=subscriptions.reader, shape=shape, groups=plan.groups, handout=handout
    )
    happened = exchange.EventPacking(
        reader=events.reader,
        shape=prepared.event_shape,
        columns=needed,
        groups=plan.groups,
        handout=handout,
    )
    schema = pa.schema([pa.field(exchange.ROW, pa.int64()), *prepared.schema])
    cells = exchange.CellMatching(
        subscription_shape=shape, event_shape=prepared.event_shape, form=prepared.form, schema=schema
    )
    handed_out = subscriptions.handed_out(shape.columns)
    packed_subscriptions = handed_out.mapInArrow(packing.run, exchange.BLOCKS)
    packed_events = events.handed_out(needed).mapInArrow(happened.run, exchange.BLOCKS)
    blocks = packed_subscriptions.unionByName(packed_events).repartitionById(plan.tasks, "task")
    found = blocks.sortWithinPartitions("cell", "kind").mapInArrow(cells.run, _ddl(schema))
    return _joined(found, prepared, plan)


def _joined(found: DataFrame, prepared: Prepared, plan: MatchPlan) -> DataFrame:
    """Join what several cells found for one event, if there are several groups."""
    ids = [f"`{name}`" for name in prepared.event_shape.ids]
    name = ANSWER[prepared.form]
    if plan.event_copies <= 1.0:
        whole = found
    elif prepared.form is Form.PAIRS:
        whole = found.dropDuplicates([exchange.ROW, name]) if plan.is_repeated else found
    else:
        together = F.sum(name) if prepared.form is Form.COUNTS else F.flatten(F.collect_list(name))
        if plan.is_repeated:
            together = F.array_distinct(together)
        firsts = [F.first(each).alias(each.strip("`")) for each in ids]
        answer = F.when(F.count(name) > 0, together).alias(name)
        whole = found.groupBy(f"`{exchange.ROW}`").agg(*firsts, answer)
    return whole.select(*ids, name)


def _is_repeated(source: RowSource) -> bool:
    """Return whether a subscriber has several subscriptions."""
    if source.frame is not None:
        return source.frame.select(SUBSCRIBER).distinct().count() < source.rows
    names = read_rows(source, [SUBSCRIBER])[SUBSCRIBER]
    return len(names.unique()) < source.rows
