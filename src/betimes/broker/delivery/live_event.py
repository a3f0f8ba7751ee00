"""The event that the scheduling broker sees of a publication."""

from __future__ import annotations

from dataclasses import dataclass

from betimes.broker.delivery.publication import Publication
from betimes.model.events import Event

PACKET_OVERHEAD_BYTES = 80  # what travels with an event on a link, about


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveEvent(Event):
    """An event with the publication it was made from."""

    publication: Publication

    @property
    def is_durable(self) -> bool:
        """Tell whether it was acknowledged for a durable session: it names the demand that it went by."""
        return self.publication.views is not None


def live_event(publication: Publication) -> LiveEvent:
    """Return the event that a publication is."""
    return LiveEvent(
        id=publication.id,
        publisher=publication.publisher,
        topic=publication.topic,
        attributes=publication.attributes(),
        size_kb=size_kb_of(publication),
        deadline_s=deadline_s_of(publication),
        publication=publication,
    )


def size_kb_of(publication: Publication) -> float:
    """Return how much a publication is on a link."""
    return (publication.content_bytes + PACKET_OVERHEAD_BYTES) / 1000.0


def deadline_s_of(publication: Publication) -> float:
    """Return the publisher's bound: a deadline, or the end of the message's life, whichever is first."""
    return min(publication.deadline_s(), publication.void_at_s - publication.born_s)
