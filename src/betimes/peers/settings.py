"""How does a peer of the brokerless overlay behave: as in the paper, or as we think is better (002)?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from betimes.matching.dz.spaces import CellBox, Space
from betimes.peers.accuracy import Accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSettings:
    """What peers are configured with; times are in the unit in which they are told the time."""

    out_degree_max: int = 10
    expressions_max: int = 8
    false_share_max: float = 0.0  # of all events, that a peer takes without wanting them
    coarsen_after: float = 5.0  # of looking for a parent in vain
    ask_again_after: float = 10.0
    refresh_every: float = 4.0
    forget_after: float = 12.0
    keeps_late: bool = False  # a parent from which events come too late, until there is a better one
    starve_after: float = math.inf  # without any event, to leave a parent
    adopts: bool = False  # the newcomer takes over the child that goes for it
    yield_after: float = math.inf  # of being late or uncovered, to ask for less
    yield_step: float = 1.0  # by so much: a hop, or as many seconds as one usually takes
    tells_needs: bool = False  # parents send only what somebody below them wants
    keeps_parts: bool = False  # of what is received, while something else is asked for in its place
    used_share: float = 1.0  # of what it may take in vain, that a peer plans with
    refine_after: float = 0.0  # of receiving too much: rates vary
    beats: bool = False  # parents say now and then how late things are, as events may be rare

    def accuracy(self, space: Space, boxes: Sequence[CellBox]) -> Accuracy:
        """Return how much more than this one may receive."""
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
    """Return ours: make before break, starve, adopt, yield and needs."""
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
    """Return ours as processes run it: events may be rare, so that parents have to say that they are well."""
    return replace(
        our_settings(out_degree_max, false_share_max, expressions_max),
        coarsen_after=3.0,
        ask_again_after=4.0,
        refresh_every=2.0,
        keeps_parts=True,
        used_share=0.8,
        refine_after=20.0,
        beats=True,
        tells_needs=False,  # until a need has gone all the way up, events would be missed
        yield_step=yield_step,
    )
