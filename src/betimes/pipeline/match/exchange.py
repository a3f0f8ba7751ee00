"""The shuffle of a divided match: subscriptions and events of one cell meet in one task.

Tasks that read rows pack those for each cell into blocks (an Arrow stream in one binary value), so that Spark
moves few large values instead of many small rows. Blocks are sorted by cell, subscriptions before events: the
task that gets them builds the index of one cell at a time, and holds no more than one in memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from betimes.kernels.types import Integers
from betimes.pipeline.match.cells import CellGroup, cells_of_events, cells_of_subscriptions
from betimes.pipeline.match.forms import STEP_MAX, Form, Steps, answered, plain_texts
from betimes.pipeline.match.plan import CellShare
from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.sources import Batches, PieceReader
from betimes.pipeline.rows.subscription_set import SubscriptionSet
from betimes.pipeline.rows.subscriptions import SubscriptionColumns, SubscriptionShape, read_subscriptions
from betimes.pipeline.tables.files import arrow_schema

BLOCKS = "task int, cell int, kind int, block binary"
SUBSCRIPTIONS, EVENTS = 0, 1  # kinds of blocks; subscriptions come first
ROWS_PER_STEP = 1 << 17
BLOCK_BYTES_MAX = 4_000_000
WAITING_BYTES_MAX = 128_000_000
ROW = "betimes row"  # the number of an event in a match, by which the parts of its answer are joined


def packed(rows: pa.RecordBatch) -> bytes:
    """Return rows as one binary value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def unpacked(block: bytes) -> pa.Table:
    """Return the rows of one binary value."""
    with pa.ipc.open_stream(block) as stream:
        return stream.read_all()


class Packer:
    """Gathers rows for each (task, cell) until they fill a block."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._waiting: dict[tuple[int, int], list[pa.RecordBatch]] = {}
        self._bytes: dict[tuple[int, int], int] = {}

    def put(self, rows: pa.RecordBatch, task: Integers, cell: Integers) -> Batches:
        """Add rows, each for a task and a cell; return the blocks that are full."""
        if not len(task):
            return
        order = np.lexsort((cell, task))
        task, cell = task[order], cell[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(task) != 0) | (np.diff(cell) != 0)])
        sorted_rows = rows.take(pa.array(order))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(task)], strict=True):
            place = (int(task[start]), int(cell[start]))
            part = sorted_rows.slice(start, stop - start)
            self._waiting.setdefault(place, []).append(part)
            self._bytes[place] = self._bytes.get(place, 0) + part.nbytes
            if self._bytes[place] >= BLOCK_BYTES_MAX:
                yield self._block(place)
        if sum(self._bytes.values()) > WAITING_BYTES_MAX:
            for place in heapq.nlargest(len(self._bytes) // 2 + 1, self._bytes, key=self._bytes.__getitem__):
                yield self._block(place)

    def rest(self) -> Batches:
        """Return what is left."""
        for place in list(self._waiting):
            yield self._block(place)

    def _block(self, place: tuple[int, int]) -> pa.RecordBatch:
        parts = pa.Table.from_batches(self._waiting.pop(place)).combine_chunks()
        self._bytes.pop(place)
        (whole,) = parts.to_batches()
        row = {"task": place[0], "cell": place[1], "kind": self._kind, "block": packed(whole)}
        return pa.RecordBatch.from_pylist([row], schema=arrow_schema(BLOCKS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Handout:
    """The tasks of each part of each cell, as flat arrays."""

    shards: Integers
    salts: Integers
    starts: Integers
    tasks: Integers  # of all cells: by shard, then by salt

    @classmethod
    def of(cls, shares: Sequence[CellShare]) -> Handout:
        """Return the tasks by the plan's shares."""
        counts = np.array([len(each.tasks) for each in shares], np.int64)
        return cls(
            shards=np.array([each.shards for each in shares], np.int64),
            salts=np.array([each.salts for each in shares], np.int64),
            starts=np.cumsum(counts) - counts,
            tasks=np.array([task for each in shares for task in each.tasks], np.int64),
        )

    def of_subscriptions(
        self, row: Integers, cell: Integers, first: int
    ) -> tuple[Integers, Integers, Integers]:
        """Return (row, task, unit) of subscriptions: each goes to one shard of its cells, with all salts."""
        salts = self.salts[cell]
        shard = (row + first) % self.shards[cell]
        begin = self.starts[cell] + shard * salts
        return self._spread(row, begin, salts, np.ones_like(salts))

    def of_events(self, row: Integers, cell: Integers, first: int) -> tuple[Integers, Integers, Integers]:
        """Return (row, task, unit) of events: each goes to all shards of its cells, with one salt."""
        begin = self.starts[cell] + (row + first) % self.salts[cell]
        return self._spread(row, begin, self.shards[cell], self.salts[cell])

    def _spread(
        self,
        row: Integers,
        begin: Integers,
        count: Integers,
        step: Integers,
    ) -> tuple[Integers, Integers, Integers]:
        nth = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        unit = np.repeat(begin, count) + nth * np.repeat(step, count)
        return np.repeat(row, count), self.tasks[unit], unit


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPacking:
    """Reads subscriptions and packs them for the cells they reach; unreadable rows are left out."""

    reader: PieceReader
    shape: SubscriptionShape
    groups: tuple[CellGroup, ...]
    handout: Handout

    def run(self, batches: Batches) -> Batches:
        """Return the blocks of one task's rows."""
        packer = Packer(SUBSCRIPTIONS)
        first = 0
        for piece in self.reader.pieces(batches, self.shape.columns, ROWS_PER_STEP):
            rows = pa.Table.from_batches([piece.rows])
            subscriptions, bad = read_subscriptions(rows, self.shape, piece.source, piece.first_row)
            kept = _without(piece.rows, bad, piece.first_row)
            row, cell = cells_of_subscriptions(self.groups, subscriptions)
            row, to, unit = self.handout.of_subscriptions(row, cell, first)
            yield from packer.put(kept.take(pa.array(row)), to, unit)
            first += len(subscriptions)
        yield from packer.rest()


def _without(rows: pa.RecordBatch, bad: pa.Table, first_row: int) -> pa.RecordBatch:
    if not bad.num_rows:
        return rows
    places = np.setdiff1d(np.arange(rows.num_rows), bad["row"].to_numpy() - first_row)
    return rows.take(pa.array(places))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPacking:
    """Reads events and packs them for the cells they go to."""

    reader: PieceReader
    shape: EventShape
    columns: tuple[str, ...]
    groups: tuple[CellGroup, ...]
    handout: Handout

    def run(self, batches: Batches) -> Batches:
        """Return the blocks of one task's rows."""
        packer = Packer(EVENTS)
        attributes = frozenset(name for group in self.groups for name in group.attributes)
        number = _first_number()
        first = 0
        for piece in self.reader.pieces(batches, self.columns, ROWS_PER_STEP):
            events = event_columns(piece.rows, self.shape, attributes)
            cells = cells_of_events(self.groups, events)
            here = np.arange(piece.rows.num_rows)
            row, to, unit = self.handout.of_events(np.tile(here, len(self.groups)), cells.ravel(), first)
            numbered = piece.rows.append_column(ROW, pa.array(number + first + here))
            yield from packer.put(numbered.take(pa.array(row)), to, unit)
            first += piece.rows.num_rows
        yield from packer.rest()


def _first_number() -> int:
    """Return where a task begins to number its events: the same number when the task is repeated."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.partitionId() if context else 0) << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMatching:
    """Builds the index of one cell after another from blocks, and matches the events of each."""

    subscription_shape: SubscriptionShape
    event_shape: EventShape
    form: Form
    schema: pa.Schema  # of the answer, with the number of the event

    def run(self, batches: Batches) -> Batches:
        """Return the answers for one task's blocks."""
        return self.answers(
            (cell, kind, block.as_py())
            for batch in batches
            for cell, kind, block in zip(
                batch["cell"].to_pylist(), batch["kind"].to_pylist(), batch["block"], strict=True
            )
        )

    def answers(self, blocks: Iterable[tuple[int, int, bytes]]) -> Batches:
        """Return which subscribers want the events of these blocks, which are sorted by cell and kind."""
        current, waiting = -1, list[pa.Table]()
        wanted: SubscriptionSet | None = None
        steps = Steps()
        for cell, kind, block in blocks:
            if cell != current:
                current, waiting, wanted, steps = cell, [], None, Steps()
            if kind == SUBSCRIPTIONS:
                waiting.append(unpacked(block))
                continue
            if wanted is None and waiting:
                wanted = SubscriptionSet(self._subscription_columns(waiting))
                waiting.clear()
            for rows in unpacked(block).to_batches(STEP_MAX):
                yield from self._matched(rows, wanted, steps)

    def _subscription_columns(self, waiting: list[pa.Table]) -> SubscriptionColumns:
        rows = pa.concat_tables(waiting, promote_options="permissive")
        return read_subscriptions(rows, self.subscription_shape)[0]

    def _matched(self, rows: pa.RecordBatch, wanted: SubscriptionSet | None, steps: Steps) -> Batches:
        names = [ROW, *self.event_shape.ids]
        for some in steps.of(rows):
            events = event_columns(some, self.event_shape, wanted.attributes if wanted else frozenset())
            if wanted is None:  # no subscriptions: only unreadable events have a row
                places = pa.array(list(events.unreadable), pa.int64())
                columns = [some.column(name).take(places) for name in names]
                columns.append(pa.nulls(len(places), self.schema.types[-1]))
                unreadable = pa.RecordBatch.from_arrays(columns, schema=self.schema)
                if unreadable.num_rows:
                    yield unreadable
                continue
            answer = answered([some.column(name) for name in names], events, wanted, self.form, self.schema)
            steps.learn(some.num_rows, answer.pairs)
            if answer.rows.num_rows:
                yield plain_texts(answer.rows, self.schema)


def bad_rows(reader: PieceReader, shape: SubscriptionShape, batches: Batches) -> Batches:
    """Return those of one task's subscriptions that cannot be read."""
    for piece in reader.pieces(batches, shape.columns, ROWS_PER_STEP):
        rows = pa.Table.from_batches([piece.rows])
        _, bad = read_subscriptions(rows, shape, piece.source, piece.first_row)
        yield from bad.to_batches()
