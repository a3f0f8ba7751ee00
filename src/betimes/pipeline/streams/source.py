"""Reading published messages with Spark, by ranges of message ids, which a broker keeps for a while.

An offset is a position: for each origin the number of its last message, exactly what `resume-after` takes.
The driver asks the broker how far the next batch reaches; tasks read what lies between. So a range has the
same messages for every reader, also after a crash, as long as the broker keeps it. Messages that the broker
has deleted are counted in the offset (`lost`), and listed in the table of gaps.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from betimes.client.blocking.ranges import PLANNED_MAX, Positions, RangePlan, RangeReader, RangeRequest
from betimes.client.errors import RefusedError, UnreachableError
from betimes.model.errors import BetimesError, SettingError
from betimes.model.positions import Gap
from betimes.pipeline.streams.options import EARLIEST, LATEST, SourceOptions
from betimes.pipeline.streams.rows import batches, check_schema

GAPS_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("filter", pa.string()),
        ("origin", pa.string()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("at_most", pa.int64()),
        ("why", pa.string()),
        ("found_at_s", pa.float64()),
    ]
)
POSITIONS, LOST = "positions", "lost"  # in an offset
MESSAGES_PER_PARTITION_MIN = 1_000  # fewer are not worth another task


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


class StreamReader(_RangeReading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads published messages, batch after batch."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._reader: RangeReader | None = None
        self._target: dict[str, int] | None = None  # the end of a stream with `availableNow`
        self._before: tuple[dict[str, int], int] | None = None  # where the last batch began, and its losses
        self._away_since_s: float | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """Return where a new query begins."""
        starting = self._options.starting or LATEST
        return _offset(position_of(self._asked(), self._options, starting), 0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 -- Spark's name
        """Return the limit of one batch."""
        return ReadMaxRows(self._options.messages_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Record the end of all that is available now."""
        self._target = position_of(self._asked(), self._options, LATEST)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next batch; the start while the broker is unreachable, for a while."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else PLANNED_MAX
        after, lost = dict(start[POSITIONS]), int(start[LOST])
        try:
            lost += self._lost_since(after)
            plan = self._plan(after, min(most, PLANNED_MAX))
        except (UnreachableError, RefusedError) as error:
            self._wait_or_raise(error)
            return start
        self._away_since_s = None
        self._before = (after, plan.lost)
        return _offset(plan.positions, lost + plan.lost)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 -- Spark's name
        """Return the broker's latest position, for the progress of the query."""
        try:
            return {POSITIONS: position_of(self._asked(), self._options, LATEST)}
        except BetimesError:
            return None  # the next batch raises the error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the range of each task of a batch."""
        began = dict(start[POSITIONS])
        if self._before is None or self._before[0] != began:  # planned before a restart, and read again
            self._before = (began, int(end[LOST]) - int(start[LOST]))
        return split(self._asked(), self._options, start[POSITIONS], end[POSITIONS])

    def stop(self) -> None:
        """Close the connection."""
        if self._reader is not None:
            self._reader.close()

    def _asked(self) -> RangeReader:
        """Return the reader; its connection stays open from batch to batch."""
        if self._reader is None:
            self._reader = self._options.place.reader(patience_s=0.0)
        return self._reader

    def _plan(self, after: dict[str, int], most: int) -> RangePlan:
        plan = self._asked().plan(self._options.wanted, after, until=self._target, most=most)
        check_whole(plan, self._options)
        return plan

    def _lost_since(self, reached: dict[str, int]) -> int:
        """Return how much of the last batch was lost between its plan and its reading, at most."""
        if self._before is None or self._before[0] == reached:
            return 0
        began, counted = self._before
        plan = self._asked().plan(self._options.wanted, began, until=reached)
        return max(plan.lost - counted, 0)

    def _wait_or_raise(self, error: BetimesError) -> None:
        """Tolerate an unreachable broker for so long: it restarts, or has no link state yet."""
        now_s = time.monotonic()
        if self._away_since_s is None:
            self._away_since_s = now_s
        if now_s - self._away_since_s > self._options.place.patience_s:
            raise error


def position_of(reader: RangeReader, options: SourceOptions, said: str | dict[str, int]) -> dict[str, int]:
    """Return the position that an option means: a number for each origin."""
    if isinstance(said, dict):
        return said
    if said == EARLIEST:
        return {}
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
                yield part

        yield from batches(noted(), schema)
    if options.gaps is not None:
        write_gaps(options.gaps, options.wanted, asked.after, asked.until, gaps)


def _offset(positions: Positions, lost: int) -> dict[str, Any]:
    return {POSITIONS: dict(sorted(positions.items())), LOST: lost}


def write_gaps(
    directory: str, wanted: RangeRequest, after: Positions, until: Positions, gaps: Sequence[Gap]
) -> Path | None:
    """Write the gaps of a range, if there are any; return the file, which is named after the range.

    So a task that reads the range again writes the same file again.
    """
    if not gaps:
        return None
    about = json.dumps([wanted.topic, wanted.filter, sorted(after.items()), sorted(until.items())])
    name = f"gaps-{hashlib.sha256(about.encode()).hexdigest()[:24]}.parquet"
    common = {"topic": wanted.topic, "filter": wanted.filter, "found_at_s": time.time()}
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    new = place / f".{name}.{os.getpid()}"
    pq.write_table(pa.Table.from_pylist([common | asdict(gap) for gap in gaps], GAPS_SCHEMA), new)
    return new.replace(place / name)
