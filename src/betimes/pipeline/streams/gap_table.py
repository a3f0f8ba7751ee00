"""The table of gaps: a directory of small Parquet files with what a stream could not read.

Each file is named after its range: a task that reads the range again writes the same file again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.client.blocking.ranges import Positions, RangeRequest
from betimes.model.positions import Gap

SCHEMA = pa.schema(
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


def write_gaps(
    directory: str, wanted: RangeRequest, after: Positions, until: Positions, gaps: Sequence[Gap]
) -> Path | None:
    """Write the gaps of a range, if there are any; return the file."""
    if not gaps:
        return None
    about = json.dumps([wanted.topic, wanted.filter, sorted(after.items()), sorted(until.items())])
    name = f"gaps-{hashlib.sha256(about.encode()).hexdigest()[:24]}.parquet"
    found_at_s = time.time()
    rows = [
        {
            "topic": wanted.topic,
            "filter": wanted.filter,
            "origin": gap.origin,
            "first": gap.first,
            "last": gap.last,
            "at_most": gap.at_most,
            "why": gap.why,
            "found_at_s": found_at_s,
        }
        for gap in gaps
    ]
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    new = place / f".{name}.{os.getpid()}"
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), new)
    return new.replace(place / name)
