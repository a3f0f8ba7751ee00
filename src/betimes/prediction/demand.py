"""The demand for each publisher's events: by subscription, and at or behind each broker.

On the routes to several subscribers an event crosses each link once: the flow there is the mass of the
union of the filters behind it (f_l of 001), not the sum of their masses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Flags, Numbers
from betimes.matching.index.event_batch import EventBatch
from betimes.matching.index.index import MatchingIndex
from betimes.model.statistics import PublisherStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.contents import Content, content_of, lets_through
from betimes.prediction.journeys import NOWHERE, Journey

SUBSCRIPTIONS_ONE_BY_ONE_MAX = 2000  # beyond, an index of all filters is faster than each filter by itself
LATTICE_FOR_MANY = 2048
ATOMS_AT_ONCE = 256  # atoms that are matched together against all filters


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedDemand:
    """The demand for one publisher's content."""

    content: Content
    masses: Numbers  # [subscription, lifetime]
    wanted_at: dict[int, Flags]  # by home: the atoms that any subscription there wants

    def reach(self, journey: Journey) -> Numbers:
        """Return for each node of a journey the mass that reaches it: all at its beginning."""
        found = np.ones(len(journey.places))
        behind: dict[int, Flags] = {}
        masses: dict[int, float] = {}  # of the part behind a node, if it is all behind one other
        for node in range(len(journey.places) - 1, -1, -1):
            broker, parent = int(journey.brokers[node]), int(journey.parents[node])
            if broker == NOWHERE:
                continue
            wanted = behind.pop(node, None)
            here = self.wanted_at.get(broker) if journey.node_of_broker[broker] == node else None
            known = masses.pop(node, None) if here is None else None
            wanted = here if wanted is None else wanted if here is None else wanted | here
            if wanted is None:
                found[node] = 0.0
                continue
            found[node] = self.content.mass(wanted) if known is None else known
            if parent in behind:
                behind[parent] = behind[parent] | wanted
                masses.pop(parent, None)
            else:
                behind[parent], masses[parent] = wanted, float(found[node])
        return found


class Demands:
    """Computes demands, once for publishers with the same content."""

    def __init__(self, subscriptions: Sequence[Subscription], homes: Sequence[int]) -> None:
        self._subscriptions = subscriptions
        self._homes = np.array(homes, dtype=np.int64)
        self._known: dict[object, ExpectedDemand] = {}
        self._index: MatchingIndex | None = None
        codes: dict[str, int] = {}
        self._pattern_of = np.array(
            [codes.setdefault(each.pattern, len(codes)) for each in subscriptions], dtype=np.int64
        )
        self._patterns = list(codes)
        self._on_topics: dict[str, Flags] = {}  # by topic: the subscriptions whose pattern matches it

    def of(self, publisher: PublisherStatistics) -> ExpectedDemand:
        """Return the demand for a publisher's events."""
        key = (
            publisher.topic,
            tuple(sorted(publisher.attributes.items())),
            publisher.deadline_s,
            id(publisher.sample) if publisher.sample else 0,
        )
        if key not in self._known:
            many = len(self._subscriptions) > SUBSCRIPTIONS_ONE_BY_ONE_MAX
            if many:
                content = content_of(publisher, atoms_max=LATTICE_FOR_MANY, any_filter=True)
                self._known[key] = self._by_index(content)
            else:
                self._known[key] = self._one_by_one(content_of(publisher, self._subscriptions))
        return self._known[key]

    def _one_by_one(self, content: Content) -> ExpectedDemand:
        masses = np.zeros((len(self._subscriptions), len(content.deadlines_s)))
        wanted_at: dict[int, Flags] = {}
        for number, (subscription, home) in enumerate(
            zip(self._subscriptions, self._homes.tolist(), strict=True)
        ):
            wanted = content.wanted(subscription)
            if wanted is None:
                continue
            masses[number] = content.mass_by_deadline(wanted)
            if home in wanted_at:
                wanted_at[home] |= wanted
            else:
                wanted_at[home] = wanted
        return ExpectedDemand(content=content, masses=masses, wanted_at=wanted_at)

    def _by_index(self, content: Content) -> ExpectedDemand:
        """Return the same by matching every atom against all filters at once."""
        if self._index is None:
            self._index = MatchingIndex()
            self._index.add_many((number, each.filter) for number, each in enumerate(self._subscriptions))
        on_topic = self._on_topic(content)
        masses = np.zeros((len(self._subscriptions), len(content.deadlines_s)))
        by_home = np.zeros((int(self._homes.max()) + 1, content.atoms), np.bool_)
        topics = [0] * content.atoms if content.topic_codes is None else content.topic_codes.tolist()
        deadlines = [0] * content.atoms if content.deadline_codes is None else content.deadline_codes.tolist()
        batch = EventBatch.from_mappings(content.events())
        for start in range(0, content.atoms, ATOMS_AT_ONCE):
            matches = self._index.match_many(batch.part(start, min(start + ATOMS_AT_ONCE, content.atoms)))
            for atom, keys in enumerate(matches, start):
                kept = keys[on_topic[topics[atom], keys]]
                masses[kept, deadlines[atom]] += content.masses[atom]
                by_home[self._homes[kept], atom] = True
        if content.deadline_shares is not None:
            masses = masses[:, :1] * content.deadline_shares
        wanted_at = {home: flags for home, flags in enumerate(by_home) if flags.any()}
        return ExpectedDemand(content=content, masses=masses, wanted_at=wanted_at)

    def _on_topic(self, content: Content) -> Flags:
        """Return for each topic the subscriptions whose patterns match it."""
        for topic in content.topics:
            if topic not in self._on_topics:
                truths = [lets_through(pattern, topic) for pattern in self._patterns]
                self._on_topics[topic] = np.array(truths, np.bool_)[self._pattern_of]
        return np.array([self._on_topics[topic] for topic in content.topics])
