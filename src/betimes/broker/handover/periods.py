"""Periods: by which broker an event reaches a client whose session moves, so that it comes once.

The broker where an event is published chooses its destinations by the demand that it knows, and the event
carries the version of each destination's demand that it went by (`Publication.views`). A session that comes
to a broker changes that broker's demand; the version that has the change is where its period there begins.
So each broker can tell of each event whether the chosen destinations included the client *here*: exactly if
the event went by that version or a later one. No broker has to remember what a client got.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from betimes.broker.delivery.publication import Publication
from betimes.model.subscriptions import DemandVersion

NEVER = DemandVersion()
VersionOf = Callable[[str], DemandVersion]


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentPeriod:
    """The period of a session that came here, and is here."""

    home: str  # this broker
    since: DemandVersion  # of its demand

    def covers(self, publication: Publication) -> bool:
        """Tell whether the client gets this here; else it comes by the session's earlier broker."""
        views = publication.views
        return views is None or views.get(self.home, NEVER) >= self.since


@dataclass(slots=True, kw_only=True)
class PastPeriod:
    """The period of a session that left: what still comes for it here is forwarded."""

    home: str
    target: str  # the broker that it went to
    target_since: DemandVersion  # of that broker's demand
    version_of: VersionOf  # that this broker knows now
    since: DemandVersion = NEVER
    until: DemandVersion | None = None  # the session is here again, since this version

    def covers(self, publication: Publication) -> bool:
        """Tell whether this came here for the client, and does not go to its new broker by itself."""
        if publication.views is None:  # it is published here, now, and goes by what is known here
            return self.until is None and self.version_of(self.target) < self.target_since
        seen = publication.views.get(self.home, NEVER)
        is_within = seen >= self.since and (self.until is None or seen < self.until)
        return is_within and self.follows(publication)

    def follows(self, publication: Publication) -> bool:
        """Tell whether an event for the client must be forwarded for the new broker to get it."""
        views = publication.views  # None: it went to no other broker
        return views is None or views.get(self.target, NEVER) < self.target_since
