"""Rows that cannot be read, as a frame: the table they are in, their place, the reason, and the detail."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from betimes.pipeline.match.api import EventInput, spark_schema
from betimes.pipeline.match.files import UNREADABLE
from betimes.pipeline.match.forms import STEP_MAX
from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.sources import Batches, PieceReader
from betimes.pipeline.tables.files import arrow_schema

REJECTED = arrow_schema("source string, place string, reason string, detail string")
ROWS_MAX = 100_000  # rejected subscriptions that are listed


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedEvents:
    """Finds, inside a task, the events that cannot be read."""

    reader: PieceReader
    shape: EventShape
    columns: tuple[str, ...]

    def run(self, batches: Batches) -> Batches:
        """Return the rejected events of one task."""
        for piece in self.reader.pieces(batches, self.columns, STEP_MAX):
            found = event_columns(piece.rows, self.shape, frozenset()).unreadable
            if found:
                rows = [
                    {
                        "source": piece.source,
                        "place": self._place(piece.rows, row),
                        "reason": UNREADABLE,
                        "detail": why,
                    }
                    for row, why in found.items()
                ]
                yield pa.RecordBatch.from_pylist(rows, schema=REJECTED)

    def _place(self, rows: pa.RecordBatch, row: int) -> str:
        return ", ".join(f"{name} {rows.column(name)[row].as_py()}" for name in self.shape.ids)


def rejected_events(events: EventInput) -> DataFrame:
    """Return the events that cannot be read, lazily; of a streaming frame, a streaming frame."""
    columns = tuple(events.shape.needed(frozenset()))
    task = RejectedEvents(reader=events.source.reader, shape=events.shape, columns=columns)
    return events.source.handed_out(columns).mapInArrow(task.run, spark_schema(REJECTED))


def rejected_subscriptions(spark: SparkSession, quarantine: pa.Table) -> DataFrame:
    """Return the subscriptions that cannot be read, as the index found them."""
    listed = [
        (
            row["source"],
            f"row {row['row']}" if row["name"] is None else f"subscriber {row['name']}",
            row["reason"],
            row["detail"],
        )
        for row in quarantine.slice(0, ROWS_MAX).to_pylist()
    ]
    return spark.createDataFrame(listed, spark_schema(REJECTED))
