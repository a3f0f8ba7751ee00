"""Reading published messages with Spark, by ranges of message ids, which a broker keeps for a while.

An offset is a position: for each origin the number of its last message, exactly what `resume-after` takes.
The driver asks the broker how far the next batch reaches; tasks read what lies between. So a range has the
same messages for every reader, also after a crash, as long as the broker keeps it. Messages that the broker
has deleted end the query, or are counted in the offset (`lost`) and listed in the table of gaps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from betimes.client.blocking.ranges import PLANNED_MAX, Positions, RangePlan, RangeReader
from betimes.client.errors import RefusedError, SubscriptionRefusedError, UnreachableError
from betimes.client.resubscribing import BackOff
from betimes.model.errors import BetimesError, SettingError
from betimes.pipeline.streams.losses import check_losses, write_gaps
from betimes.pipeline.streams.options import EARLIEST, LATEST, Position, PublishedSince, SourceOptions
from betimes.pipeline.streams.pushdown import push_filters
from betimes.pipeline.streams.rows import batches, check_schema

POSITIONS, LOST, UNKNOWN = "positions", "lost", "unknown"  # in an offset
BATCH_MESSAGES_MAX = 100_000  # unless an option says otherwise
PAUSE_S_MAX = 2.0  # between two attempts to reach a broker
MESSAGES_PER_PARTITION_MIN = 1_000  # fewer are not worth another task


T = TypeVar("T")


class StreamRange(InputPartition):
    """What one task reads."""

    def __init__(self, after: Positions, until: Positions) -> None:
        super().__init__((dict(after), dict(until)))
        self.after = dict(after)
        self.until = dict(until)


class _RangeReading:
    """What readers of batches and of streams have in common."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_schema(schema)
        self._options = options
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one range."""
        assert isinstance(partition, StreamRange), "as `partitions` made it"
        return read_range(self._options, self._schema, partition)


class BatchReader(_RangeReading, DataSourceReader):
    """Reads what is kept between two positions."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return the range of each task."""
        with self._options.place.reader() as reader:
            after = position_of(reader, self._options, self._options.starting or EARLIEST)
            until = position_of(reader, self._options, self._options.ending or LATEST)
            return split(reader, self._options, after, until) or [StreamRange({}, {})]


class PushingReader(BatchReader):
    """Reads what is kept and passes the predicates that the broker can check.

    A class of its own: Spark refuses a reader with `pushFilters` in sessions that have not enabled it.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 -- Spark's name
        """Take what the broker checks exactly as Spark would, and return the rest."""
        wanted = self._options.wanted
        text, left = push_filters(filters, self._schema, wanted.filter)
        self._options = replace(self._options, wanted=replace(wanted, filter=text))
        return left


class StreamReader(_RangeReading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads published messages, batch after batch."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        if options.ending is not None:
            problem = "a stream has no end; it is an option of spark.read"
            raise SettingError("ending", options.ending, problem, "trigger(availableNow=True) ends a stream")
        self._reader: RangeReader | None = None
        self._target: dict[str, int] | None = None  # the end of a stream with `availableNow`
        # where the last batch began, with its losses and its gaps of unknown size
        self._before: tuple[dict[str, int], int, int] | None = None
        self._away_since_s: float | None = None
        self._batch_at_s = time.monotonic()  # when the last batch was planned
        self._planned: dict[str, int] | None = None  # where it ends

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """Return where a new query begins."""
        starting = self._options.starting or LATEST
        return _offset(self._patiently(lambda reader: position_of(reader, self._options, starting)), 0, 0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 -- Spark's name
        """Return the limit of one batch."""
        rows, size = self._options.messages_per_batch, self._options.batch_bytes_max
        if rows is None and size is not None:
            return ReadMaxBytes(size)
        return ReadMaxRows(rows or BATCH_MESSAGES_MAX)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Record the end of all that is available now."""
        self._target = self._patiently(lambda reader: position_of(reader, self._options, LATEST))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next batch; the start while the broker is unreachable, for a while."""
        after, lost, unknown = dict(start[POSITIONS]), int(start[LOST]), int(start.get(UNKNOWN, 0))
        try:
            more_lost, more_unknown = self._lost_since(after)
            plan = self._plan(after, limit)
        except (UnreachableError, RefusedError) as error:
            self._wait_or_raise(error)
            return start
        self._away_since_s = None
        if not isinstance(limit, ReadAllAvailable) and self._waits_for_more(plan):
            return start
        check_losses(plan.gaps, self._options.fails_on_loss)
        self._before = (after, plan.lost, plan.unknown)
        self._batch_at_s = time.monotonic()
        return _offset(plan.positions, lost + more_lost + plan.lost, unknown + more_unknown + plan.unknown)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 -- Spark's name
        """Return the broker's latest position and the lag of the query, for its progress."""
        try:
            latest = position_of(self._asked(), self._options, LATEST)
            told: dict[str, Any] = {POSITIONS: latest}
            if self._planned is not None:
                told["lag_messages"] = self._asked().plan(self._options.wanted, self._planned).kept
        except BetimesError:
            return None  # the next batch raises the error
        return told

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the range of each task of a batch."""
        began = dict(start[POSITIONS])
        if self._before is None or self._before[0] != began:  # planned before a restart, and read again
            lost, unknown = (int(end.get(name, 0)) - int(start.get(name, 0)) for name in (LOST, UNKNOWN))
            self._before = (began, lost, unknown)
        return self._patiently(
            lambda reader: split(reader, self._options, start[POSITIONS], end[POSITIONS]),
            also=SubscriptionRefusedError,
        )

    def stop(self) -> None:
        """Close the connection."""
        if self._reader is not None:
            self._reader.close()

    def _asked(self) -> RangeReader:
        """Return the reader; its connection stays open from batch to batch."""
        if self._reader is None:
            self._reader = self._options.place.reader(patience_s=0.0)
        return self._reader

    def _patiently(self, ask: Callable[[RangeReader], T], also: type[BetimesError] = UnreachableError) -> T:
        """Return an answer; a broker that is away may come back for as long as `reconnect` says."""
        back_off = BackOff(time.monotonic() + self._options.place.patience_s, PAUSE_S_MAX)
        while True:
            try:
                return ask(self._asked())
            except (UnreachableError, also):
                pause_s = back_off.pause_s(time.monotonic())
                if pause_s is None:
                    raise
            time.sleep(pause_s)

    def _plan(self, after: dict[str, int], limit: ReadLimit) -> RangePlan:
        most, size = self._options.messages_per_batch, self._options.batch_bytes_max
        if isinstance(limit, ReadMaxRows):
            most = limit.max_rows
        elif isinstance(limit, ReadMaxBytes):
            size = limit.max_bytes
        else:  # the options do not count where Spark asks for all
            most, size = None, None
        most = min(most or PLANNED_MAX, PLANNED_MAX)
        wanted = self._options.wanted
        plan = self._asked().plan(wanted, after, until=self._target, most=most, bytes_max=size)
        check_whole(plan, self._options)
        self._planned = plan.positions
        return plan

    def _waits_for_more(self, plan: RangePlan) -> bool:
        """Tell whether a batch would be smaller than it should be, and may still wait."""
        if plan.kept >= self._options.batch_messages_min or self._target is not None:
            return False
        return time.monotonic() - self._batch_at_s < self._options.trigger_delay_s_max

    def _lost_since(self, reached: dict[str, int]) -> tuple[int, int]:
        """Return how much of the last batch was lost between its plan and its reading, at most.

        And how many gaps of unknown size were found. Where losses are an error, the task has raised it.
        """
        if self._before is None or self._before[0] == reached:
            return 0, 0
        began, lost, unknown = self._before
        plan = self._asked().plan(self._options.wanted, began, until=reached)
        return max(plan.lost - lost, 0), max(plan.unknown - unknown, 0)

    def _wait_or_raise(self, error: BetimesError) -> None:
        """Tolerate an unreachable broker for so long: it restarts, or has no link state yet."""
        now_s = time.monotonic()
        if self._away_since_s is None:
            self._away_since_s = now_s
        if now_s - self._away_since_s > self._options.place.patience_s:
            raise error


def position_of(reader: RangeReader, options: SourceOptions, said: Position) -> dict[str, int]:
    """Return the position that an option means: a number for each origin."""
    if isinstance(said, dict):
        return said
    if said == EARLIEST:
        plan = reader.begin(options.wanted)
    elif isinstance(said, PublishedSince):
        plan = reader.begin(options.wanted, said.at_us)
    else:
        plan = reader.plan(options.wanted, {})
    check_whole(plan, options)
    return plan.positions


def check_whole(plan: RangePlan, options: SourceOptions) -> None:
    """Raise an error if the broker does not have everything, unless the options accept that."""
    if not plan.is_whole and not options.takes_part:
        problem = "this broker does not get, or does not keep, everything of these topics"
        hint = 'fetch = ["#"] in its [buffer], or option("part", "accept") for what it has'
        raise SettingError("topic", options.wanted.topic, problem, hint)


def split(
    reader: RangeReader, options: SourceOptions, after: Positions, until: Positions
) -> list[InputPartition]:
    """Return ranges that together are the whole, of about the same number of messages."""
    ends = {origin: number for origin, number in until.items() if number > after.get(origin, 0)}
    if not ends:
        return []
    at, ranges = dict(after), []
    if options.partitions > 1:
        kept = reader.plan(options.wanted, at, until=ends).kept
        each = max(math.ceil(kept / options.partitions), MESSAGES_PER_PARTITION_MIN)
        for _ in range(min(math.ceil(kept / each), options.partitions) - 1):
            reached = reader.plan(options.wanted, at, until=ends, most=each).positions
            ranges.append(StreamRange(at, reached))
            at = reached
    return [*ranges, StreamRange(at, {**at, **ends})]


def read_range(options: SourceOptions, schema: StructType, asked: StreamRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, and write its gaps."""
    gaps = []
    with options.place.reader() as reader:
        parts = reader.read(options.wanted, asked.after, asked.until)

        def noted() -> Iterator[Any]:
            for part in parts:
                gaps.extend(part.gaps)
                check_losses(part.gaps, options.fails_on_loss)
                yield part

        yield from batches(noted(), schema)
    if options.gaps is not None:
        write_gaps(options.gaps, options.wanted, asked.after, asked.until, gaps)


def _offset(positions: Positions, lost: int, unknown: int) -> dict[str, Any]:
    offset = {POSITIONS: dict(sorted(positions.items())), LOST: lost}
    return offset | ({UNKNOWN: unknown} if unknown else {})
