"""The status of a peer as JSON, published to `$betimes/peer/status` whenever it changes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from betimes.broker.peers.overlay import PeerOverlay
from betimes.peers.peer import Peer

STATUS_TOPIC = "$betimes/peer/status"
EVERY_S = 1.0


def peer_status(overlay: PeerOverlay) -> dict[str, Any]:
    """Return the status of the peers of a process, for people and programs."""
    plan, me, tally = overlay.plan, overlay.subscriber, overlay.tally
    status: dict[str, Any] = {
        "address": overlay.address,
        "overlay": plan.agreement.text,
        "links": len(overlay.mail.links),
        "peers_known": len(overlay.view.others),
        "publishers_known": len(me.lines.publishers),
        "wants": [each.text for each in overlay.demand.filters],
        "dz": [str(dz) for dz in me.dz],
        "max_delay": plan.delay_max,
        "claims": _number(me.claim),
        "delay": _number(me.lines.depth if me.dz else math.inf),
        "parents": _parents(me),
        "children": _children(me),
        "uncovered": [str(dz) for dz in me.lines.uncovered()],
        "late": [str(dz) for dz in me.lines.late()],
        "received": int(me.received),
        "received_again": me.repeated,
        "wanted": tally.wanted,
        "in_vain": int(me.received) - tally.wanted,
        "in_time": tally.in_time,
        "on_time_share": round(tally.in_time / tally.wanted, 4) if tally.wanted else None,
        "delay_mean": _number(tally.delay_sum / tally.wanted) if tally.wanted else None,
        "delay_most": _number(tally.delay_most) if tally.wanted else None,
        "published": tally.published,
        "lost": {str(reason): count for reason, count in tally.lost.items()},
        "complaints": list(overlay.complaints),
    }
    if overlay.publisher is not None:
        status["publishes"] = [str(dz) for dz in overlay.publisher.dz]
        status["publishing_to"] = _children(overlay.publisher)
    return status


def _parents(peer: Peer) -> dict[str, list[str]]:
    return {name: [str(dz) for dz in peer.lines.of_parent(name)] for name in sorted(peer.lines.parents())}


def _children(peer: Peer) -> dict[str, list[str]]:
    found = sorted(peer.children.by_name.items())
    return {name: [str(dz) for dz in sorted(child.served)] for name, child in found}


def _number(value: float) -> float | None:
    return None if math.isinf(value) else round(value, 6)


class StatusPublisher:
    """Publishes the status of a peer when it has changed, once in `EVERY_S` at most."""

    def __init__(self, overlay: PeerOverlay, announce: Callable[[str, bytes, float], None]) -> None:
        self._overlay = overlay
        self._announce = announce
        self._published = b""
        self._due_s = -math.inf

    def tick(self, now_s: float) -> bytes | None:
        """Publish the status if it is due and has changed; return what was published, if anything."""
        if now_s < self._due_s:
            return None
        self._due_s = now_s + EVERY_S
        text = json.dumps(peer_status(self._overlay)).encode()
        if text == self._published:
            return None
        self._published = text
        self._announce(STATUS_TOPIC, text, now_s)
        return text
