"""The transfer time of a link as a line over the message size, fitted to what was measured.

A message takes a fixed time, and longer the larger it is. Seconds per kilobyte alone would turn a short
message that met a busy machine into a link on which long ones take minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from betimes.model.topology import Link
from betimes.pipeline.tables.files import read_batches
from betimes.pipeline.tables.shapes import TRANSFERS

ROWS_READ_MAX = 2_000_000
STALLED_SHARE = 0.01  # of the messages: the slowest, which waited for a processor rather than for the link
ENDS, NUMBERS = ("source", "target"), ("size_kb", "transfer_s", "share")
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLine:
    """The transfer time of a link: a constant for each message, and a mean and deviation per kilobyte."""

    fixed_s: float
    s_per_kb_mean: float
    s_per_kb_sd: float


def fit_line(size_kb: Numbers, transfer_s: Numbers, weight: Numbers) -> LinkLine:
    """Return the least-squares line, fitted twice: the second time without the points furthest above it."""
    line = _least_squares(size_kb, transfer_s, weight)
    late_s = transfer_s - line.fixed_s - line.s_per_kb_mean * size_kb
    kept = np.argsort(late_s)[: len(late_s) - int(STALLED_SHARE * len(late_s))]
    return _least_squares(size_kb[kept], transfer_s[kept], weight[kept])


def _least_squares(size_kb: Numbers, transfer_s: Numbers, weight: Numbers) -> LinkLine:
    """Return the line; through zero, with the same total time, where the sizes determine no constant part."""
    total = float(weight.sum())
    size_mean, time_mean = float(weight @ size_kb) / total, float(weight @ transfer_s) / total
    aside = weight * (size_kb - size_mean)
    spread = float(aside @ size_kb)
    slope = float(aside @ transfer_s) / spread if spread > 1e-9 * total * size_mean**2 else 0.0
    fixed_s = time_mean - slope * size_mean
    if slope <= 0.0 or fixed_s < 0.0:
        slope, fixed_s = time_mean / size_mean, 0.0
    off_s = transfer_s - fixed_s - slope * size_kb
    # The deviation is per kilobyte too: chosen so that messages like these vary as these do.
    deviation = np.sqrt(float(weight @ off_s**2) / float(weight @ size_kb**2))
    return LinkLine(fixed_s=fixed_s, s_per_kb_mean=slope, s_per_kb_sd=float(deviation))


def measured_links(folder: Path) -> tuple[Link, ...]:
    """Return the links with at least one arrival, with their lines, from the transfers of a run."""
    batches: list[pa.RecordBatch] = []
    for batch in read_batches(TRANSFERS, folder, [*ENDS, *NUMBERS]):
        batches.append(batch)
        if sum(map(len, batches)) >= ROWS_READ_MAX:
            break
    if not batches:
        return ()
    by_link = pa.Table.from_batches(batches).group_by(list(ENDS), use_threads=False)
    gathered = by_link.aggregate([(name, "list") for name in NUMBERS])
    return tuple(map(_link, gathered.sort_by([(name, "ascending") for name in ENDS]).to_pylist()))


def _link(row: dict[str, Any]) -> Link:
    size_kb, transfer_s, share = (np.array(row[f"{name}_list"]) for name in NUMBERS)
    line = fit_line(size_kb, transfer_s, np.rint(1.0 / share))
    return Link(
        source=row["source"],
        target=row["target"],
        s_per_kb_mean=line.s_per_kb_mean,
        s_per_kb_sd=line.s_per_kb_sd,
        delay_s=line.fixed_s,
    )
