"""Gap messages: a subscriber learns which numbers it has missed for good.

Whoever comes back is told what no broker kept. Whoever is here and reads too slowly is told what did not fit
into its queue, in its place among what did.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from urllib.parse import quote

import mqtt5

from betimes.broker.delivery.publication import Publication
from betimes.model.positions import Gap
from betimes.model.user_properties import GAP_TOPIC

QUEUE_FULL = "queue full"
ORIGINS_MAX = 1_000  # that are told apart


def gap_message(broker: str, client_id: str, gap: Gap, now_s: float) -> Publication:
    """Return the message that tells a client of a gap."""
    topic = f"{GAP_TOPIC}/{quote(client_id, safe='')}"
    packet = mqtt5.PublishPacket(topic, json.dumps(asdict(gap)).encode(), content_type="application/json")
    return Publication(packet, topic, born_s=now_s, origin=broker)


class MissedMessages:
    """What did not fit into one client's queue, and it was not told of yet."""

    def __init__(self, broker: str, client_id: str) -> None:
        self._broker = broker
        self._client_id = client_id
        self._gaps: dict[str, Gap] = {}  # by origin

    def __bool__(self) -> bool:
        return bool(self._gaps)

    def note(self, publication: Publication) -> None:
        """Take in one message that is lost to the client."""
        origin, number = publication.origin, publication.number
        known = self._gaps.get(origin)
        if known is None and (len(self._gaps) >= ORIGINS_MAX or publication.topic[0] == "$"):
            return
        first, last, count = (
            (number, number, 0) if known is None else (known.first, known.last, known.at_most)
        )
        self._gaps[origin] = Gap(
            origin=origin,
            first=min(first, number),
            last=max(last, number),
            at_most=count + 1,
            why=QUEUE_FULL,
        )

    def take(self, now_s: float) -> list[Publication]:
        """Return what is to be told, and forget it."""
        gaps, self._gaps = self._gaps, {}
        return [gap_message(self._broker, self._client_id, each, now_s) for each in gaps.values()]
