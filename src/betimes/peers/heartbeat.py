"""Heartbeats: a parent reports to its children that it is alive, and how late events are there.

A parent regularly reports the delay of every expression that it serves. The reports travel from hop to hop,
as distances do in routing: a parent without a parent reports infinity, and in a cycle the numbers grow
until a peer leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from betimes.matching.dz.expressions import Dz, covers
from betimes.peers.children import Children
from betimes.peers.coverage import Coverage, CoverageTable
from betimes.peers.messages import Beat, SendToPeer


def beats_to(children: Children, lines: CoverageTable | None) -> list[SendToPeer]:
    """Return the beat for each child; without lines the peer publishes, and has no delay."""
    return [
        SendToPeer(name, Beat(tuple([(dz, _depth(dz, lines)) for dz in sorted(child.served)])))
        for name, child in children.by_name.items()
    ]


def _depth(dz: Dz, lines: CoverageTable | None) -> float:
    if lines is None:
        return 0.0
    for wider, line in lines.by_dz.items():
        if covers(wider, dz):
            return line.depth if lines.is_covered(wider, line) else math.inf
    return math.inf


def depths_from(sender: str, beat: Beat, lines: CoverageTable) -> Iterator[tuple[Dz, Coverage, float]]:
    """Return the delays in a beat for lines that its sender feeds, if events arrive at all."""
    for dz, depth in beat.depths:
        line = lines.by_dz.get(dz)
        if line is not None and depth < math.inf and (line.parent == sender or sender in line.publishers):
            yield dz, line, depth
