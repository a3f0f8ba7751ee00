"""Histograms over millions of rows in many files, in one pass whose result does not depend on order.

Every doubling of the quantity is divided into 64 cells, so that a fast link and an outlier fit one scale. For
each cell a task counts the messages, and sums the values, in steps of a ten-thousandth, and their squares.
These are sums of integers below 2**53, which are exact: the result is the same to the last digit however rows
are distributed among tasks. Spark hands out files and adds up; a task reads its files with pyarrow, because
rows that cross from Java to Python cost more than everything else here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from betimes.kernels.types import Integers, Numbers
from betimes.model.distributions import Histogram
from betimes.pipeline.rows.events import one_array
from betimes.pipeline.spark.lazy import DataFrame, F, SparkSession
from betimes.pipeline.spark.session import TASKS_PER_CORE, cores, dealt_out
from betimes.pipeline.tables.files import arrow_schema, folder_values

CELLS_PER_DOUBLING = 64
STEP_BITS = 14  # a value has so many bits, and is off by at most one part in 16,384
ZERO_CELL = -(2**20)  # of the value 0, which is in no doubling
HISTOGRAM_CELLS = 200
TAIL_SHARE = 0.001  # of each end of a histogram: what lies beyond is counted in its last cell
BATCHES_HELD_MAX = 16
SUMS = ("rows", "count", "steps", "squares")
CELL_COLUMNS = "cell bigint, rows bigint, count double, steps double, squares double"
PLACES_MAX = 2_000_000  # of (group, cell) that are counted without sorting


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What a file is read for: a column, perhaps divided by another, for each value of the key columns."""

    keys: tuple[str, ...]
    value: str
    divisor: str | None = None

    @property
    def columns(self) -> list[str]:
        """Return the columns to read."""
        return [*self.keys, "share", self.value, *([self.divisor] if self.divisor else [])]

    @property
    def ddl(self) -> str:
        """Return the columns of counted cells, as Spark's DDL."""
        return ", ".join((*(f"`{key}` string" for key in self.keys), CELL_COLUMNS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Rows, messages, steps and squared steps in each cell, by cell."""

    cell: Integers
    rows: Integers
    count: Numbers
    steps: Numbers
    squares: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramShape:
    """The shape of a distribution; quantiles and ends are right to one per cent, the rest is exact."""

    rows: int
    count: float
    mean: float
    variance: float
    cells: tuple[tuple[float, float, float], ...] = field(repr=False)  # low, high, count; ascending

    @classmethod
    def of(cls, cells: Cells) -> HistogramShape:
        """Return the shape by the cells."""
        order = np.argsort(cells.cell)
        cell, count = cells.cell[order], cells.count[order]
        unit = np.where(cell == ZERO_CELL, 0.0, np.exp2(cell // CELLS_PER_DOUBLING - STEP_BITS, dtype=float))
        total = float(count.sum())
        # fsum, so that the order of cells does not matter here either.
        mean = math.fsum(unit * cells.steps[order]) / total
        square = math.fsum(unit**2 * cells.squares[order]) / total
        edges = [cell_ends(each) for each in cell.tolist()]
        return cls(
            rows=int(cells.rows.sum()),
            count=total,
            mean=mean,
            variance=max(square - mean**2, 0.0),
            cells=tuple((*ends, number) for ends, number in zip(edges, count.tolist(), strict=True)),
        )

    @property
    def least(self) -> float:
        """Return the lower end of the lowest cell."""
        return self.cells[0][0]

    @property
    def most(self) -> float:
        """Return the upper end of the highest cell."""
        return self.cells[-1][1]

    def quantile(self, share: float) -> float:
        """Return the value below which this share lies, values spread evenly within a cell."""
        wanted, below = share * self.count, 0.0
        for low, high, count in self.cells:
            if below + count >= wanted:
                return low + (high - low) * (wanted - below) / count
            below += count
        return self.most

    def histogram(self, cells: int = HISTOGRAM_CELLS) -> Histogram:
        """Return it with cells of equal width; the first and the last also hold the tails beyond them."""
        start, end = self.quantile(TAIL_SHARE), self.quantile(1.0 - TAIL_SHARE)
        if not end > start:
            start, end = self.least, self.most if self.most > self.least else self.least + 1e-9
        width = (end - start) / cells
        low, high, count = np.array(self.cells).T
        edges = start + width * np.arange(cells + 1)
        edges[0], edges[-1] = min(edges[0], low[0]), max(edges[-1], high[-1])
        below = np.interp(edges, np.append(low, high[-1]), np.append(0.0, np.cumsum(count)))
        if self.cells[0][1] == 0.0:  # zeros lie at one point, which is in the first cell
            below = below.clip(min=self.cells[0][2])
            below[0] = 0.0
        return Histogram(start=start, width=width, weights=tuple(np.diff(below).tolist()))


def cell_ends(cell: int) -> tuple[float, float]:
    """Return the lower and the upper end of a cell.

    >>> cell_ends(CELLS_PER_DOUBLING), cell_ends(ZERO_CELL)
    ((1.0, 1.015625), (0.0, 0.0))
    """
    if cell == ZERO_CELL:
        return 0.0, 0.0
    doubling, place = divmod(cell, CELLS_PER_DOUBLING)
    start = 0.5 + place / (2 * CELLS_PER_DOUBLING)
    return math.ldexp(start, doubling), math.ldexp(start + 0.5 / CELLS_PER_DOUBLING, doubling)


def cells_of(values: Numbers) -> tuple[Integers, Numbers]:
    """Return the cell of each value, and the value in integer steps of its doubling."""
    part, doubling = np.frexp(values)
    place = ((part - 0.5) * (2 * CELLS_PER_DOUBLING)).astype(np.int64)
    cell = doubling.astype(np.int64) * CELLS_PER_DOUBLING + place
    cell[values == 0.0] = ZERO_CELL
    return cell, np.rint(part * 2.0**STEP_BITS)


def counted(groups: Integers, values: Numbers, weights: Numbers) -> tuple[Integers, Cells]:
    """Return the groups and cells that occur, with their sums."""
    cell, steps = cells_of(values)
    group_names, group = _dense(groups)
    cell_names, place = _dense(cell)
    at = group * len(cell_names) + place
    places = len(group_names) * len(cell_names)
    if places > PLACES_MAX:
        names, at = np.unique(at, return_inverse=True)
        places = len(names)
    else:
        names = np.arange(places)
    weighted = weights * steps
    rows = np.bincount(at, minlength=places)
    here = np.flatnonzero(rows)
    return group_names[names[here] // len(cell_names)], Cells(
        cell=cell_names[names[here] % len(cell_names)],
        rows=rows[here],
        count=_added(at, weights, places)[here],
        steps=_added(at, weighted, places)[here],
        squares=_added(at, weighted * steps, places)[here],
    )


def _added(at: Integers, values: Numbers, places: int) -> Numbers:
    return np.bincount(at, values, places).astype(np.float64, copy=False)


def _dense(codes: Integers) -> tuple[Integers, Integers]:
    """Return the codes that occur, ascending, and each code's position among them."""
    least = int(codes.min(initial=0))
    span = int(codes.max(initial=0)) - least + 1
    if span > PLACES_MAX:
        names, places = np.unique(codes, return_inverse=True)
        return names, places
    occurs = np.zeros(span, np.int64)
    occurs[codes - least] = 1
    return np.flatnonzero(occurs) + least, (np.cumsum(occurs) - 1)[codes - least]


def count_files(measure: Measure, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the rows of one task's files; Spark calls this with their paths."""
    found: list[pa.RecordBatch] = []
    for batch in batches:
        for path in batch.column(0).to_pylist():
            found += (_counted_rows(rows, measure) for rows in _row_groups(path, measure))
            if len(found) >= BATCHES_HELD_MAX:
                found = _merged(found, measure)
    yield from _merged(found, measure)


def _merged(batches: list[pa.RecordBatch], measure: Measure) -> list[pa.RecordBatch]:
    """Return the sums of several batches as one: less to pass to Spark."""
    if len(batches) < 2:
        return batches
    whole = pa.Table.from_batches(batches).group_by([*measure.keys, "cell"], use_threads=False)
    added = whole.aggregate([(name, "sum") for name in SUMS])
    named = added.rename_columns([name.removesuffix("_sum") for name in added.column_names])
    merged: list[pa.RecordBatch] = named.select(batches[0].schema.names).combine_chunks().to_batches()
    return merged


def _row_groups(path: str, measure: Measure) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    constants = folder_values(path)
    inside = [name for name in measure.columns if name not in constants]
    texts = [name for name in measure.keys if name not in constants]
    file = pq.ParquetFile(path, read_dictionary=texts, memory_map=True)
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number, columns=inside, use_threads=False)
        for name in measure.keys:
            if name in constants:
                codes = pa.array(np.zeros(rows.num_rows, np.int32))
                rows = rows.append_column(name, pa.DictionaryArray.from_arrays(codes, [constants[name]]))
        if rows.num_rows:
            yield rows


def _counted_rows(rows: pa.Table, measure: Measure) -> pa.RecordBatch:
    columns = [one_array(rows[name]) for name in measure.keys]
    groups = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        groups = groups * len(column.dictionary) + column.indices.to_numpy()
    values = rows[measure.value].to_numpy()
    if measure.divisor:
        values = values / rows[measure.divisor].to_numpy()
    found, cells = counted(groups, values, np.rint(1.0 / rows["share"].to_numpy()))
    keys: list[pa.Array] = []
    for column in reversed(columns):
        found, code = np.divmod(found, len(column.dictionary))
        keys.insert(0, column.dictionary.take(pa.array(code)).cast(pa.string()))
    numbers = [cells.cell, cells.rows, cells.count, cells.steps, cells.squares]
    return pa.RecordBatch.from_arrays([*keys, *map(pa.array, numbers)], schema=arrow_schema(measure.ddl))


def cell_frame(spark: SparkSession, files: Sequence[str], measure: Measure) -> DataFrame:
    """Return the sums of each cell of each group, counted by tasks that read files."""
    tasks = max(min(len(files), TASKS_PER_CORE * cores(spark)), 1)
    table = pa.table({"path": pa.array(sorted(files), pa.string()), "task": np.arange(len(files)) % tasks})
    counts = (
        dealt_out(spark, table, tasks).select("path").mapInArrow(partial(count_files, measure), measure.ddl)
    )
    return counts.groupBy(*measure.keys, "cell").agg(*(F.sum(name).alias(name) for name in SUMS))


def spreads(
    spark: SparkSession, files: Sequence[str], measure: Measure
) -> Mapping[tuple[str, ...], HistogramShape]:
    """Return the shape of a measure in some Parquet files, for each value of its keys, sorted by them."""
    if not files:
        return {}
    table = cell_frame(spark, files, measure).toArrow()
    names = list(zip(*(table[name].to_pylist() for name in measure.keys), strict=True))
    places: dict[tuple[str, ...], list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    columns = {name: table[name].to_numpy() for name in ("cell", *SUMS)}
    return {
        name: HistogramShape.of(Cells(**{column: values[at] for column, values in columns.items()}))
        for name, at in sorted(places.items())
    }
