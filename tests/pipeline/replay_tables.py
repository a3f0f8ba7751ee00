"""How are the tables made that a replay reads? Small ones, with only what matters filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.pipeline.tables.files import ARROW_TYPES
from betimes.pipeline.tables.shapes import BROKERS, EVENTS, LINKS, WAIT_DISTRIBUTIONS, TableShape


def write_rows(folder: Path, table: TableShape, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of a table; a column that a row does not name is empty."""
    schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in table.columns])
    columns = {
        name: pa.array([row.get(name) for row in rows], schema.field(name).type) for name in schema.names
    }
    place = folder / table.name
    if table.divided_by:
        place = place / f"{table.divided_by}={rows[0][table.divided_by]}"
        del columns[table.divided_by]
    place.mkdir(parents=True)
    pq.write_table(pa.table(columns), place / "part-0.parquet")


def write_tables(
    folder: Path,
    *,
    links: Sequence[tuple[str, str, float, float, float]],
    waits: Sequence[tuple[str, str, str, float, float, float]] = (),
    matching_s: Mapping[str, float] | None = None,
) -> None:
    """Write (source, target, mean, variance, loss) and (publisher, broker, target, count, mean, variance)."""
    names = ("source", "target", "s_per_kb_mean", "s_per_kb_variance", "loss")
    write_rows(folder, LINKS, [dict(zip(names, link, strict=True)) for link in links])
    told = ("publisher", "broker", "target", "count", "wait_s_mean", "wait_s_variance")
    write_rows(folder, WAIT_DISTRIBUTIONS, [dict(zip(told, wait, strict=True)) for wait in waits])
    measured = [{"broker": name, "matching_s_mean": mean} for name, mean in (matching_s or {}).items()]
    write_rows(folder, BROKERS, measured)


def write_events(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write events that entered at one broker."""
    usual = {"time_s": 100.0, "share": 1.0, "origin": "a", "publisher": "p", "topic": "t", "size_kb": 1.0,
             "deadline_s": float("inf"), "wanted": 0, "content": "{}", "stored": 0, "matching_s": 0.0,
             "broker": "a"}  # fmt: skip
    write_rows(folder, EVENTS, [usual | {"number": number} | dict(row) for number, row in enumerate(rows)])
