"""Matching events with subscriptions: which subscribers want which event.

`match` takes frames or tables and returns a frame; `match_files` writes Parquet files straight from the
tasks. Both ask `plan.py` how: one index for all subscriptions, or cells. A subscriber with several
subscriptions to an event is listed once.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

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
from betimes.pipeline.match.shared_set import SetPlace, SharedSet
from betimes.pipeline.match.tasks import MatchTask
from betimes.pipeline.rows.events import EventColumns, EventsError, EventShape, event_columns
from betimes.pipeline.rows.sources import NO_VALUES, RowSource, frame_rows, read_rows
from betimes.pipeline.rows.subscription_set import SubscriptionSet
from betimes.pipeline.rows.subscriptions import (
    QUARANTINE,
    SUBSCRIBER,
    SubscriptionsError,
    SubscriptionShape,
    read_subscriptions,
)
from betimes.pipeline.spark.lazy import DataFrame, F
from betimes.pipeline.spark.session import cores

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

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
class EventInput:
    """Events to match, the roles of their columns, and the form of the answer."""

    source: RowSource
    shape: EventShape
    form: Form
    schema: pa.Schema  # of the answer

    @classmethod
    def of(cls, events: Tables, ids: Sequence[str], form: Form, subscriber: pa.DataType) -> EventInput:
        """Return events for subscribers of this type, or raise an EventsError; a frame stays lazy."""
        source = events if isinstance(events, RowSource) else frame_rows(events, "events", is_counted=False)
        shape = EventShape.of(source.schema, ids, source.name)
        named = [source.schema.field(name).remove_metadata() for name in shape.ids]
        for each in named:
            if each.name.lower() == ANSWER[form]:
                hint = "rename it, or name the events by other columns (ids)"
                problem = f"column {each.name!r} is one of the answer's"
                raise EventsError(f"{source.name}: {problem}\nhint: {hint}")
            if each.type == NO_VALUES:
                raise EventsError(f"{source.name}: column {each.name!r} cannot name events\nhint: cast it")
        return cls(source=source, shape=shape, form=form, schema=answer_schema(named, form, subscriber))

    def task(self, place: SetPlace, attributes: Set[str]) -> MatchTask:
        """Return the task for one index, which is at a place and uses these attributes."""
        return MatchTask(
            place=place,
            reader=self.source.reader,
            shape=self.shape,
            form=self.form,
            columns=tuple(self.shape.needed(attributes)),
            schema=self.schema,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchInput:
    """What a match is about: events, and subscriptions with the roles of their columns."""

    happened: EventInput
    subscriptions: RowSource
    subscription_shape: SubscriptionShape

    @property
    def events(self) -> RowSource:
        """Return the rows of the events."""
        return self.happened.source


def match(
    events: Tables,
    subscriptions: Tables,
    *,
    form: Form = Form.LISTS,
    ids: Sequence[str] = (),
    settings: MatchSettings | None = None,
) -> Matching:
    """Return which subscribers want which event; both tables are frames, or opened by `rows/sources.py`."""
    tables = match_input(events, subscriptions, form, ids)
    wanted, quarantine, plan = planned(tables, settings or MatchSettings())
    check_some(wanted, quarantine)
    if wanted is None:
        return Matching(frame=divided_frame(tables, plan), quarantine=quarantine, plan=plan)
    frame = whole_frame(tables.happened, SharedSet(tables.events.spark, wanted))
    return Matching(frame=frame, quarantine=quarantine, plan=plan)


def match_input(events: Tables, subscriptions: Tables, form: Form, ids: Sequence[str]) -> MatchInput:
    """Return both tables with the roles of their columns, or raise an error about them."""
    wanted = (
        subscriptions if isinstance(subscriptions, RowSource) else frame_rows(subscriptions, "subscriptions")
    )
    return MatchInput(
        subscription_shape=SubscriptionShape.of(wanted.schema, wanted.name),
        happened=EventInput.of(events, ids, form, wanted.schema.field(SUBSCRIBER).type),
        subscriptions=wanted,
    )


def planned(
    tables: MatchInput, settings: MatchSettings
) -> tuple[SubscriptionSet | None, pa.Table, MatchPlan]:
    """Return the set of all subscriptions, if the plan has one index; the rows set aside; and the plan."""
    subscriptions, events = tables.subscriptions, tables.events
    columns, shape = tables.subscription_shape.columns, tables.subscription_shape
    rows = read_rows(subscriptions, columns, SAMPLE_ROWS)
    parsed, bad = read_subscriptions(rows, shape, subscriptions.name)
    sampled = SubscriptionSet(parsed)
    bytes_each = max(sampled.index.size_bytes / max(len(parsed), 1), 1.0)
    expected_mb = subscriptions.rows * bytes_each / MB
    if expected_mb <= settings.index_mb_max:
        if subscriptions.rows > SAMPLE_ROWS:
            parsed, bad = read_subscriptions(read_rows(subscriptions, columns), shape, subscriptions.name)
            sampled = SubscriptionSet(parsed)
        plan = MatchPlan(
            subscriptions=subscriptions.rows,
            events=events.known_rows,
            index_mb=sampled.index.size_bytes / MB,
            index_mb_max=settings.index_mb_max,
        )
        return sampled, bad, plan
    sample = Sample(
        sampled=parsed,
        subscriptions=subscriptions.rows,
        bytes_each=bytes_each,
        happened=_some_events(tables, sampled.attributes),
        events=events.known_rows,
    )
    tasks = tasks_for(cores(events.spark), settings, expected_mb)
    plan = divided_plan(sample, settings, tasks, is_repeated=_is_repeated(subscriptions))
    return None, _bad_rows(tables), plan


def check_some(wanted: SubscriptionSet | None, bad: pa.Table) -> None:
    """Raise a SubscriptionsError if no subscription can be read."""
    if wanted is not None and not len(wanted) and bad.num_rows:
        first = bad.slice(0, 1).to_pylist()[0]
        problem = f"{first['source']}: {first['reason']}: {first['detail']}"
        raise SubscriptionsError(f"{problem}\nhint: none of its {bad.num_rows:,} subscriptions can be read")


def _some_events(tables: MatchInput, attributes: Set[str]) -> EventColumns | None:
    """Return a sample of the events; those of a frame that was not counted are not read either."""
    events = tables.events
    if events.known_rows is None:
        return None
    rows = read_rows(events, tables.happened.shape.needed(attributes), SAMPLE_ROWS)
    none = pa.RecordBatch.from_pylist([], schema=rows.schema)
    batches = rows.combine_chunks().to_batches() or [none]
    return event_columns(batches[0], tables.happened.shape, attributes)


def _bad_rows(tables: MatchInput) -> pa.Table:
    """Return the subscriptions that cannot be read; tasks find them."""
    source = tables.subscriptions
    task = partial(exchange.bad_rows, source.reader, tables.subscription_shape)
    given = source.handed_out(tables.subscription_shape.columns)
    found = given.mapInArrow(task, spark_schema(QUARANTINE)).limit(QUARANTINED_MAX).toArrow()
    return found.cast(QUARANTINE)


def spark_schema(schema: pa.Schema) -> StructType:
    """Return a schema as Spark writes it."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def whole_frame(events: EventInput, shared: SharedSet) -> DataFrame:
    """Return the answer by one index, lazily; the events may be a streaming frame."""
    task = events.task(shared.place, shared.attributes)
    return events.source.handed_out(task.columns).mapInArrow(task.to_spark, spark_schema(events.schema))


def divided_frame(tables: MatchInput, plan: MatchPlan) -> DataFrame:
    """Return the answer of a divided match: blocks meet in tasks, then an event's answers are joined."""
    if tables.happened.form is Form.COUNTS and plan.is_repeated:
        # lists first: several cells may find the same subscriber
        events, subscriptions, ids = tables.events, tables.subscriptions, tables.happened.shape.ids
        lists = divided_frame(match_input(events, subscriptions, Form.LISTS, ids), plan)
        listed, count = ANSWER[Form.LISTS], ANSWER[Form.COUNTS]
        return lists.withColumn(count, F.size(listed).cast("bigint")).drop(listed)
    events, subscriptions = tables.events, tables.subscriptions
    handout = exchange.Handout.of(plan.shares)
    shape = tables.subscription_shape
    # those of filters are known to tasks only
    used = tables.happened.shape.columns if shape.filter else (*shape.lows, *shape.highs, *shape.equals)
    needed = tuple(tables.happened.shape.needed(frozenset(used)))
    packing = exchange.SubscriptionPacking(
        reader=subscriptions.reader, shape=shape, groups=plan.groups, handout=handout
    )
    happened = exchange.EventPacking(
        reader=events.reader,
        shape=tables.happened.shape,
        columns=needed,
        groups=plan.groups,
        handout=handout,
    )
    schema = pa.schema([pa.field(exchange.ROW, pa.int64()), *tables.happened.schema])
    cells = exchange.CellMatching(
        subscription_shape=shape, event_shape=tables.happened.shape, form=tables.happened.form, schema=schema
    )
    handed_out = subscriptions.handed_out(shape.columns)
    packed_subscriptions = handed_out.mapInArrow(packing.run, exchange.BLOCKS)
    packed_events = events.handed_out(needed).mapInArrow(happened.run, exchange.BLOCKS)
    blocks = packed_subscriptions.unionByName(packed_events).repartitionById(plan.tasks, "task")
    found = blocks.sortWithinPartitions("cell", "kind").mapInArrow(cells.run, spark_schema(schema))
    return _joined(found, tables, plan)


def _joined(found: DataFrame, tables: MatchInput, plan: MatchPlan) -> DataFrame:
    """Join what several cells found for one event, if there are several groups."""
    ids = [f"`{name}`" for name in tables.happened.shape.ids]
    name = ANSWER[tables.happened.form]
    if plan.event_copies <= 1.0:
        whole = found
    elif tables.happened.form is Form.PAIRS:
        whole = found.dropDuplicates([exchange.ROW, name]) if plan.is_repeated else found
    else:
        together = F.sum(name) if tables.happened.form is Form.COUNTS else F.flatten(F.collect_list(name))
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
