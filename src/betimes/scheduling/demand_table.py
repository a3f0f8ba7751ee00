"""The demand for an event: homes, bounds and prices. The left half of the paper's subscription table.

Subscribers with the same home broker and the same bound have the same outcome, so they are one row of
demand with their prices added up. The cost of scheduling then grows with the number of homes and bounds,
not with the number of subscribers. The sums in (3) and (8) are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from betimes.kernels.compile import kernel
from betimes.kernels.types import Integers, Numbers
from betimes.matching.index.index import MatchingIndex
from betimes.matching.topics import TopicTree
from betimes.model.bounded_map import BoundedMap
from betimes.model.errors import SettingError
from betimes.model.events import Event
from betimes.model.subscriptions import Subscription
from betimes.scheduling.appraisal import BOUND_S, COUNT, DESTINATION, PRICE, VERDICT

EVENTS_REMEMBERED = 4096
AUDIENCES_REMEMBERED = 1024
AUDIENCE_REMEMBERED_MAX = 1024  # subscriptions; comparing larger audiences takes as long as grouping them
MET = 1.0  # marks a kind that has rows, during the sum
NO_KEYS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demand:
    """The value of one event by place: a row per (home, bound), sorted by home (see `appraisal`)."""

    rows: Numbers
    at_home: Mapping[str, tuple[Subscription, ...]]
    homes: frozenset[str]  # of at_home
    wanted: int
    deadline_s: float  # the publisher's bound, already applied to the rows

    def among(self, destinations: frozenset[str]) -> frozenset[str]:
        """Return those of these destinations that have demand for it; most often all of them."""
        return destinations if destinations <= self.homes else destinations & self.homes

    def subscribers_at(self, home: str) -> int:
        """Return the number of subscribers that want it at a home."""
        return sum([each.subscribers for each in self.at_home.get(home, ())])


class DemandTable:
    """All subscriptions of the network, which flooding brings to every broker.

    Homes are numbered in the order of `homes`, which is also the order of the routing table's columns.
    Brokers that share a table (in the simulator all of them do) share its cache of recently matched events.
    Events that meet the same subscriptions have the same demand, so the result for one serves the next,
    entirely if the publisher's bound is the same. A row without a subscriber, which only lets a broker keep
    an event, is left out if the same home has a row with subscribers and a bound that is not shorter.
    """

    def __init__(
        self,
        homes: Iterable[str],
        subscriptions: Iterable[Subscription] = (),
        *,
        remembered_max: int = EVENTS_REMEMBERED,
    ) -> None:
        self.homes = tuple(homes)
        self._home_number = {home: number for number, home in enumerate(self.homes)}
        self._indexes: dict[str, MatchingIndex] = {}  # by topic pattern
        self._patterns: TopicTree[MatchingIndex] = TopicTree()
        self._subscriptions: list[Subscription | None] = []
        self._key: dict[str, int] = {}
        self._free_keys: list[int] = []
        self._kind_number: dict[tuple[int, float], int] = {}  # a kind: one home and one bound
        self._kinds = np.zeros((16, 5))  # [kind, DESTINATION | BOUND_S | PRICE | COUNT | 0]; sums start at 0
        self._members = np.zeros((16, 3))  # [key, kind | price | subscribers]
        self._recent: BoundedMap[Event, Demand] = BoundedMap(remembered_max)
        # by keys; with the last publisher's bound
        self._audiences: BoundedMap[bytes, Demand] = BoundedMap(AUDIENCES_REMEMBERED)
        for subscription in subscriptions:
            self.add(subscription)

    def __len__(self) -> int:
        return len(self._key)

    def add_home(self, home: str) -> None:
        """Add a broker that was not known; known brokers keep their numbers."""
        if home not in self._home_number:
            self._home_number[home] = len(self.homes)
            self.homes += (home,)

    def hears(self, topic: str) -> bool:
        """Return whether any subscription may match an event of this topic."""
        return bool(self._patterns.match(topic))

    def add(self, subscription: Subscription) -> None:
        """Add a subscription; its id must be new and its home known."""
        if subscription.id in self._key:
            raise SettingError("subscription", subscription.id, "there is one with this name already")
        if subscription.home not in self._home_number:
            raise SettingError("home", subscription.home, "no such broker in this network")
        key = self._free_keys.pop() if self._free_keys else len(self._subscriptions)
        if key == len(self._subscriptions):
            self._subscriptions.append(None)
        index = self._indexes.get(subscription.pattern)
        if index is None:
            index = self._indexes[subscription.pattern] = MatchingIndex()
            self._patterns.add(subscription.pattern, index)
        index.add(key, subscription.filter)
        self._subscriptions[key] = subscription
        self._key[subscription.id] = key
        self._members = _with_room_for(self._members, key)
        self._members[key] = (self._kind(subscription), subscription.qos.price, subscription.subscribers)
        self._forget()

    def remove(self, subscription_id: str) -> None:
        """Remove a subscription."""
        if subscription_id not in self._key:
            raise SettingError("subscription", subscription_id, "there is none with this name")
        key = self._key.pop(subscription_id)
        forgotten = self._subscriptions[key]
        assert forgotten is not None, "every key in use has its subscription"
        index = self._indexes[forgotten.pattern]
        index.remove(key)
        if not len(index):
            del self._indexes[forgotten.pattern]
            self._patterns.remove(forgotten.pattern, index)
        self._subscriptions[key] = None
        self._free_keys.append(key)
        self._forget()

    def demand(self, event: Event) -> Demand:
        """Return the demand for an event, grouped by home and bound."""
        known = self._recent.get(event)
        if known is not None:
            return known
        demand = self._work_out(event)
        self._recent.note(event, demand)
        return demand

    def _kind(self, subscription: Subscription) -> int:
        home, bound_s = self._home_number[subscription.home], subscription.qos.delay_s_max
        kind = self._kind_number.setdefault((home, bound_s), len(self._kind_number))
        self._kinds = _with_room_for(self._kinds, kind)
        self._kinds[kind] = (home, bound_s, 0.0, 0.0, 0.0)
        return kind

    def _forget(self) -> None:
        self._recent.clear()
        self._audiences.clear()

    def _work_out(self, event: Event) -> Demand:
        found_keys = [index.match(event.attributes) for index in self._patterns.match(event.topic)]
        keys = found_keys[0] if len(found_keys) == 1 else np.concatenate([NO_KEYS, *found_keys])
        if len(keys) > AUDIENCE_REMEMBERED_MAX:
            return self._grouped(keys, event.deadline_s)
        audience = keys.tobytes()
        known = self._audiences.get(audience)
        if known is not None and known.deadline_s == event.deadline_s:
            return known
        demand = self._grouped(keys, event.deadline_s, known)
        self._audiences.note(audience, demand)
        return demand

    def _grouped(self, keys: Integers, deadline_s: float, known: Demand | None = None) -> Demand:
        """Return the demand of these subscriptions; the grouping may be known from another event."""
        rows = np.empty((min(len(keys), len(self._kind_number)), 5))
        used, wanted = _group(keys, self._members, self._kinds, deadline_s, rows)
        at_home = self._by_home(keys) if known is None else known.at_home
        homes = frozenset(at_home) if known is None else known.homes
        return Demand(rows=rows[:used], at_home=at_home, homes=homes, wanted=wanted, deadline_s=deadline_s)

    def _by_home(self, keys: Integers) -> dict[str, tuple[Subscription, ...]]:
        at_home: defaultdict[str, list[Subscription]] = defaultdict(list)
        for found in map(self._subscriptions.__getitem__, keys.tolist()):
            assert found is not None, "the index knows a subscription that the table has forgotten"
            at_home[found.home].append(found)
        return {home: tuple(found) for home, found in at_home.items()}


def _with_room_for(table: Numbers, row: int) -> Numbers:
    return table if row < len(table) else np.concatenate([table, np.zeros_like(table)])


@kernel
def _group(
    keys: Integers, members: Numbers, kinds: Numbers, deadline_s: float, rows: Numbers
) -> tuple[int, int]:
    """Add up prices and counts by kind, and write a row for each kind found, by home.

    Return the number of rows needed, and the number of subscribers.
    """
    wanted = 0.0
    met = np.empty(len(rows), np.int64)
    found = 0
    for key in keys:
        kind = int(members[key, 0])
        if kinds[kind, VERDICT] == 0.0:
            kinds[kind, VERDICT] = MET
            met[found] = kind
            found += 1
        kinds[kind, PRICE] += members[key, 1]
        kinds[kind, COUNT] += members[key, 2]
        wanted += members[key, 2]
    order = np.argsort(kinds[met[:found], DESTINATION])
    for row in range(found):
        kind = met[order[row]]
        kinds[kind, VERDICT] = 0.0
        rows[row] = kinds[kind]
        rows[row, BOUND_S] = min(kinds[kind, BOUND_S], deadline_s)
        kinds[kind, PRICE] = 0.0
        kinds[kind, COUNT] = 0.0
    return _leave_out(rows, found), int(wanted)


@kernel
def _leave_out(rows: Numbers, found: int) -> int:
    """Remove rows without a subscriber if another row of the home has as long a bound; return the count."""
    used = 0
    for row in range(found):
        needed = rows[row, COUNT] > 0.0
        if not needed:
            needed = True
            for other in range(found):
                if (
                    rows[other, COUNT] > 0.0
                    and rows[other, DESTINATION] == rows[row, DESTINATION]
                    and rows[other, BOUND_S] >= rows[row, BOUND_S]
                ):
                    needed = False
        if needed:
            rows[used] = rows[row]
            used += 1
    return used
