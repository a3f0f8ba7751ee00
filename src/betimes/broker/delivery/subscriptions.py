"""The subscriptions of a broker, found by topic and by content filter.

Subscriptions with the same topic filter stand together; those with a content filter have a matching index, so
that a publication costs O(log n) in their number and not one check each.
"""

from __future__ import annotations

from collections.abc import Iterable

from betimes.broker.delivery.delivery import SharedSubscription
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.language.filters.parse import parse_filter
from betimes.matching.index.index import TAIL_ROWS_MAX, MatchingIndex
from betimes.matching.topics import TopicTree


def warm_up() -> None:
    """Load or compile the kernels of content filters before a client waits for them."""
    index = MatchingIndex()
    wanted = parse_filter("a > 1 OR b = 'x'")
    for key in range(TAIL_ROWS_MAX + 2):  # so many that an index is built
        index.add(key, wanted)
    index.match({"a": 2.0, "b": "y"})
    index.remove(0)


class SharedGroup:
    """The members of one shared subscription, which take turns."""

    def __init__(self) -> None:
        self.members: list[BrokerSubscription] = []
        self._turn = 0

    def pick(self, publication: Publication) -> BrokerSubscription | None:
        """Return the member whose turn it is, of those that want it; None if none does.

        Members that can take it at once come first, then connected but busy ones, then those that are away.
        """
        count = len(self.members)
        second = third = -1
        for step in range(count):
            place = (self._turn + step) % count
            session = self.members[place].session
            if session.ready() is not None:
                if self.members[place].wants(publication):
                    return self._chosen(place)
            elif session.connection is not None:
                if second < 0 and self.members[place].wants(publication):
                    second = place
            elif third < 0 and self.members[place].wants(publication):
                third = place
        place = second if second >= 0 else third
        return self._chosen(place) if place >= 0 else None

    def _chosen(self, place: int) -> BrokerSubscription:
        self._turn = place + 1
        return self.members[place]


class TopicSubscribers:
    """All subscriptions with one topic filter."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.plain: dict[str, BrokerSubscription] = {}  # by client id
        self.shared: dict[str, SharedGroup] = {}  # by group
        self.is_plain = True  # no content filter and no shared subscription: all of them get everything
        self._index: MatchingIndex | None = None  # most patterns have no need of one
        self._wishing: list[BrokerSubscription | None] = []
        self._key: dict[str, int] = {}  # by client id
        self._free_keys: list[int] = []

    def __bool__(self) -> bool:
        return bool(self.plain or self._key or self.shared)

    @property
    def count(self) -> int:
        """Return how many subscriptions these are."""
        shared = sum(len(each.members) for each in self.shared.values())
        return len(self.plain) + len(self._key) + shared

    def add(self, subscription: BrokerSubscription) -> None:
        """Take in a subscription; the client has none with this pattern and group."""
        client_id = subscription.session.client_id
        if subscription.group is not None:
            self.shared.setdefault(subscription.group, SharedGroup()).members.append(subscription)
        elif subscription.options is None:
            self.plain[client_id] = subscription
        else:
            key = self._free_keys.pop() if self._free_keys else len(self._wishing)
            if key == len(self._wishing):
                self._wishing.append(None)
            if self._index is None:
                self._index = MatchingIndex()
            self._index.add(key, subscription.options.filter)
            self._wishing[key] = subscription
            self._key[client_id] = key
        self.is_plain = not self._key and not self.shared

    def remove(self, subscription: BrokerSubscription) -> None:
        """Forget a subscription."""
        client_id = subscription.session.client_id
        if subscription.group is not None:
            shares = self.shared[subscription.group]
            shares.members.remove(subscription)
            if not shares.members:
                del self.shared[subscription.group]
        elif subscription.options is None:
            del self.plain[client_id]
        else:
            key = self._key.pop(client_id)
            assert self._index is not None, "a filter was taken in, so there is an index"
            self._index.remove(key)
            self._wishing[key] = None
            self._free_keys.append(key)
        self.is_plain = not self._key and not self.shared

    def wanting(self, publication: Publication) -> Iterable[BrokerSubscription]:
        """Yield every grant that this publication meets, one of each shared subscription."""
        yield from self.plain.values()
        if self._key and self._index is not None:
            for key in self._index.match(publication.attributes()).tolist():
                subscription = self._wishing[key]
                assert subscription is not None, (
                    "the index knows a subscription that the audience has forgotten"
                )
                yield subscription
        for shares in self.shared.values():
            picked = shares.pick(publication)
            if picked is not None:
                yield picked


class SubscriptionTree:
    """All subscriptions of the server, by pattern."""

    def __init__(self) -> None:
        self._tree: TopicTree[TopicSubscribers] = TopicTree()
        self._by_pattern: dict[str, TopicSubscribers] = {}
        self._had: dict[str, int] = {}  # by origin: the highest number that a resuming client has
        self.count = 0

    def may_be_had(self, publication: Publication) -> bool:
        """Tell whether a client that resumed may have this already."""
        return publication.number <= self._had.get(publication.origin, 0)

    def add(self, subscription: BrokerSubscription) -> None:
        """Take in a subscription."""
        for origin, had in subscription.have.items() if subscription.have is not None else ():
            self._had[origin] = max(had.highest, self._had.get(origin, 0))
        subscribers = self._by_pattern.get(subscription.pattern)
        if subscribers is None:
            subscribers = self._by_pattern[subscription.pattern] = TopicSubscribers(subscription.pattern)
            self._tree.add(subscription.pattern, subscribers)
        subscribers.add(subscription)
        self.count += 1

    def remove(self, subscription: BrokerSubscription) -> None:
        """Forget a subscription."""
        subscribers = self._by_pattern[subscription.pattern]
        subscribers.remove(subscription)
        self.count -= 1
        if not subscribers:
            del self._by_pattern[subscription.pattern]
            self._tree.remove(subscription.pattern, subscribers)
        if not self.count:
            self._had.clear()

    def hearing(self, topic: str) -> tuple[TopicSubscribers, ...]:
        """Return the audiences whose patterns this topic meets."""
        return self._tree.match(topic)

    def stand_in(
        self, subscription: SharedSubscription, publication: Publication
    ) -> BrokerSubscription | None:
        """Return another member of a shared subscription for what one member did not get."""
        subscribers = self._by_pattern.get(subscription.pattern)
        shares = (
            subscribers.shared.get(subscription.group)
            if subscribers is not None and subscription.group
            else None
        )
        return None if shares is None else shares.pick(publication)
