"""What a query could not read: the error that ends it, and the table of gaps.

A broker counts as lost only what it knows to have been published. Of the numbers before its own start it does
not know whether they were ever given: such a gap is "not remembered", and its size is unknown.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.client.blocking.ranges import Positions, RangeRequest
from betimes.model.errors import BetimesError
from betimes.model.positions import Gap
from betimes.replay.buffer import NOT_REMEMBERED

GAPS_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("filter", pa.string()),
        ("origin", pa.string()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("at_most", pa.int64()),  # null: unknown
        ("why", pa.string()),
        ("found_at_s", pa.float64()),
    ]
)
GAPS_NAMED_MAX = 10  # in one error
HINT = 'hint: option("failOnDataLoss", "false") counts them and goes on; a larger [buffer] keeps more'


class DataLossError(BetimesError):
    """Messages that a query should have read are not kept any more."""


def check_losses(gaps: Sequence[Gap], fails: bool) -> None:
    """Raise an error that names what is lost, of which origin and why, where a query is to fail on it."""
    if not gaps or not fails:
        return
    known = sum(gap.at_most for gap in gaps if gap.why != NOT_REMEMBERED)
    named = [_sentence(gap) for gap in gaps[:GAPS_NAMED_MAX]]
    more = [f"and {len(gaps) - GAPS_NAMED_MAX} gaps more"] if len(gaps) > GAPS_NAMED_MAX else []
    count = f"at most {known} messages are lost" if known else "it is unknown how many messages are lost"
    raise DataLossError(f"{count}: {'; '.join(named + more)}\n{HINT}")


def _sentence(gap: Gap) -> str:
    where = f"numbers {gap.first} to {gap.last} of {gap.origin}"
    if gap.why == NOT_REMEMBERED:
        return f"{where}: the broker was started anew, and does not know what was published before"
    return f"{gap.at_most} of {gap.origin} ({gap.why}; numbers {gap.first} to {gap.last})"


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
    rows = [common | asdict(gap) | ({"at_most": None} if gap.why == NOT_REMEMBERED else {}) for gap in gaps]
    pq.write_table(pa.Table.from_pylist(rows, GAPS_SCHEMA), new)
    return new.replace(place / name)
