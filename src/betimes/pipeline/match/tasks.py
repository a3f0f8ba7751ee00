"""The task of a match with one index for all subscriptions.

The task opens the index (`shared_set.py`), which its process keeps for the next task, and goes through its
events. The answer goes on to Spark, or straight into a Parquet file: then only one row about each file comes
back, because lists that cross from Python to Java cost several times what finding them did.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.pipeline.match.forms import STEP_MAX, Form, MatchAnswer, Steps, answered, plain_texts
from betimes.pipeline.match.shared_set import SetPlace, kept_set
from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.sources import Batches, PieceReader
from betimes.pipeline.tables.files import arrow_schema

SPLIT_TYPES = (pa.int32(), pa.int64())  # Spark reads unsigned integers only without this encoding
UNREADABLE_LISTED_MAX = 1000  # unreadable events of one task that are listed individually
WRITTEN = (
    "file string, events bigint, wanted bigint, pairs bigint, unreadable bigint, listed string, "
    "processor_s double"
)
WRITTEN_SCHEMA = arrow_schema(WRITTEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTask:
    """All that a task needs beside its events."""

    place: SetPlace
    reader: PieceReader
    shape: EventShape
    form: Form
    columns: tuple[str, ...]  # to be read
    schema: pa.Schema  # of the answer

    def to_spark(self, batches: Batches) -> Batches:
        """Pass the answer for one task's events to Spark."""
        for answer, _, _ in self._steps(batches):
            if answer.rows.num_rows:
                yield plain_texts(answer.rows, self.schema)

    def to_file(self, folder: Path, batches: Batches) -> Batches:
        """Write the answer for one task's events into a file of its own, and report that file."""
        began_s = time.process_time()
        # Each attempt has a file of its own; only reported files are kept.
        path = folder / f"part-{uuid.uuid4().hex}.parquet"
        sums: Counter[str] = Counter()
        listed: list[dict[str, object]] = []
        with AnswerFile(path) as file:
            for answer, events, unreadable in self._steps(batches):
                sums["events"] += events
                sums["wanted"] += answer.wanted
                sums["pairs"] += answer.pairs
                sums["unreadable"] += len(unreadable)
                listed += unreadable[: UNREADABLE_LISTED_MAX - len(listed)]
                file.write(answer.rows)
        row = {
            "file": path.name if path.exists() else None,
            **{name: sums[name] for name in ("events", "wanted", "pairs", "unreadable")},
            "listed": json.dumps(listed),
            "processor_s": time.process_time() - began_s,
        }
        yield pa.RecordBatch.from_pylist([row], schema=WRITTEN_SCHEMA)

    def _steps(self, batches: Batches) -> Iterator[tuple[MatchAnswer, int, list[dict[str, object]]]]:
        """Return the answers for some events at a time, how many, and source, row and detail of bad ones."""
        wanted = kept_set(self.place)
        steps = Steps()
        for piece in self.reader.pieces(batches, self.columns, STEP_MAX):
            first_row = piece.first_row
            for rows in steps.of(piece.rows):
                events = event_columns(rows, self.shape, wanted.attributes)
                ids = [rows.column(name) for name in self.shape.ids]
                answer = answered(ids, events, wanted, self.form, self.schema)
                steps.learn(rows.num_rows, answer.pairs)
                unreadable: list[dict[str, object]] = [
                    {"source": piece.source, "row": first_row + row, "detail": detail}
                    for row, detail in events.unreadable.items()
                ]
                yield answer, rows.num_rows, unreadable
                first_row += rows.num_rows


class AnswerFile:
    """A Parquet file that is opened with the first rows; each call writes a row group."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> AnswerFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, rows: pa.RecordBatch) -> None:
        """Write the rows of one step."""
        if not rows.num_rows:
            return
        if self._file is None:
            # Texts are dictionary-encoded already; searching for repeated numbers takes longer than writing
            # them.
            coded = [field.name for field in rows.schema if _is_coded(field.type)]
            self._file = pq.ParquetWriter(
                self._path,
                rows.schema,
                compression="zstd",
                use_dictionary=coded or False,
                column_encoding=_by_bytes(rows.schema.field(rows.num_columns - 1)),
                write_statistics=False,
            )
        self._file.write_batch(rows)


def _by_bytes(answer: pa.Field) -> dict[str, str] | None:
    """Return the columns of numbers for byte-stream-split encoding: the first bytes of all numbers first.

    Low bytes are random and high bytes alike: separated, they compress better, in a quarter of the time.
    """
    is_list = pa.types.is_list(answer.type)
    kind = answer.type.value_type if is_list else answer.type
    if kind not in SPLIT_TYPES:
        return None
    return {f"{answer.name}.list.element" if is_list else answer.name: "BYTE_STREAM_SPLIT"}


def _is_coded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind.value_type if pa.types.is_list(kind) else kind))
