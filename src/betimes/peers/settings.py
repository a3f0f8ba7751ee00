"""The settings of a peer of the brokerless overlay: the paper's protocol, or ours (002)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from betimes.matching.dz.spaces import CellBox, Space
from betimes.peers.accuracy import Accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSettings:
    """The configuration of peers; times are in the unit of the driver's clock."""

    out_degree_max: int = 10
    expressions_max: int = 8
    false_share_max: float = 0.0  # of all events, that a peer accepts without wanting them
    coarsen_after: float = 5.0  # of an unsuccessful search for a parent
    ask_again_after: float = 10.0
    refresh_every: float = 4.0
    forget_after: float = 12.0
    keeps_late: bool = False  # a parent whose events arrive too late, until there is a better one
    starve_after: float = math.inf  # without any event, until a parent is left
    adopts: bool = False  # the newcomer takes over the child that was dismissed for it
    yield_after: float = math.inf  # of being late or uncovered, until a looser bound is stated
    yield_step: float = 1.0  # by so much: a hop, or the usual seconds of one
    tells_needs: bool = False  # parents send only what peers below them want
    keeps_parts: bool = False  # of what is received, while something else is requested in its place
    used_share: float = 1.0  # of the accepted unwanted traffic, that a peer plans with
    refine_after: float = 0.0  # of receiving too much: rates vary
    beats: bool = False  # parents regularly report delays, as events may be rare

    def accuracy(self, space: Space, boxes: Sequence[CellBox]) -> Accuracy:
        """Return the accuracy of a peer with these boxes."""
        share, count_max = self.false_share_max, self.expressions_max
        return Accuracy(space, boxes, share, count_max, used_share=self.used_share)


def paper_settings(
    out_degree_max: int, false_share_max: float = 0.0, expressions_max: int = 8
) -> PeerSettings:
    """Return the paper's protocol."""
    return PeerSettings(
        out_degree_max=out_degree_max, false_share_max=false_share_max, expressions_max=expressions_max
    )


def our_settings(out_degree_max: int, false_share_max: float = 0.0, expressions_max: int = 8) -> PeerSettings:
    """Return our protocol: make before break, starve, adopt, yield and needs."""
    return PeerSettings(
        out_degree_max=out_degree_max,
        false_share_max=false_share_max,
        expressions_max=expressions_max,
        keeps_late=True,
        starve_after=6.0,
        adopts=True,
        yield_after=45.0,
        tells_needs=True,
    )


def live_settings(
    out_degree_max: int, false_share_max: float = 0.0, expressions_max: int = 8, *, yield_step: float = 1.0
) -> PeerSettings:
    """Return ours for live processes: events may be rare, so parents send heartbeats."""
    return replace(
        our_settings(out_degree_max, false_share_max, expressions_max),
        coarsen_after=3.0,
        ask_again_after=4.0,
        refresh_every=2.0,
        keeps_parts=True,
        used_share=0.8,
        refine_after=20.0,
        beats=True,
        tells_needs=False,  # until a need has reached the top, events would be missed
        yield_step=yield_step,
    )
