"""How does a hub become part of an overlay of peers?"""

from __future__ import annotations

import random

from betimes.broker.core.hub import Hub
from betimes.broker.peers.overlay import PeerOverlay
from betimes.broker.peers.settings import PeerPlan
from betimes.model.telemetry import Reason


def join_overlay(
    hub: Hub, plan: PeerPlan, *, life: int, now_s: float, seed: int | None = None
) -> PeerOverlay:
    """Make a hub part of an overlay; `life` is more than that of any earlier life at this address."""
    assert hub.name == plan.address, "events are numbered by where they come from"

    def lose(reason: Reason, count: int) -> None:
        hub.lost[reason] += count

    overlay = PeerOverlay(
        plan,
        life=life,
        packet_bytes_max=hub.limits.packet_bytes_max,
        deliver=hub.take_from_afar,
        lose=lose,
        chance=random.Random(seed).random,
        now_s=now_s,
    )
    hub.network = hub.overlay = overlay
    return overlay
