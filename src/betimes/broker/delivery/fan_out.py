"""Fan-out: a publication goes to every client whose subscriptions it matches, once to each.

Subscriptions with the same topic filter stand together; those with a content filter have a matching index, so
that a publication costs O(log n) in their number and not one check each. What goes to many clients unchanged
is encoded once; what needs a packet id, a subscription identifier or a queue becomes a `Delivery` of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from betimes.broker.delivery.delivery import Delivery, Lose, SharedSubscription
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.language.filters.parse import parse_filter
from betimes.matching.index.index import TAIL_ROWS_MAX, MatchingIndex
from betimes.matching.topics import TopicTree
from betimes.model.telemetry import Reason


class FanOut:
    """The subscriptions of a server, and how publications reach them."""

    def __init__(self, lose: Lose) -> None:
        self.tree = SubscriptionTree()
        self.met = 0  # subscriptions that the last publication met, before those of one client were merged
        self._lose = lose

    def fan_out_all(self, publication: Publication, now_s: float) -> int:
        """Offer a publication to all subscribers that want it; return how many they are."""
        tree = self.tree.hearing(publication.topic)
        if not tree:
            self.met = 0
            return 0
        if len(tree) > 1:
            return self._offer_merged(publication, tree, now_s)
        subscribers, may_be_had = tree[0], self.tree.may_be_had(publication)
        # An offer may end a connection, never a subscription: the dictionary does not change under way.
        if subscribers.is_plain:
            for subscription in subscribers.plain.values():
                self._offer(publication, subscription, now_s, may_be_had)
            self.met = len(subscribers.plain)
            return self.met
        wanted = 0
        for subscription in subscribers.wanting(publication):
            self._offer(publication, subscription, now_s, may_be_had)
            wanted += 1
        self.met = wanted
        return wanted

    def pass_on(self, delivery: Delivery, now_s: float) -> None:
        """Give what a client did not get to another of its shared subscription, if it had it by one.

        Not with QoS 2 where that client may have it already [MQTT-4.8.2-5].
        """
        heir = None
        if delivery.share is not None and not (delivery.qos == 2 and delivery.packet_id is not None):
            heir = self.tree.stand_in(delivery.share, delivery.publication)
        if heir is None:
            self._lose(delivery, Reason.SESSION_ENDED, now_s)
        else:
            heir.session.offer(delivery_of(delivery.publication, heir, retain=delivery.retain), now_s)

    def _offer(
        self,
        publication: Publication,
        subscription: BrokerSubscription,
        now_s: float,
        may_be_had: bool = True,
    ) -> None:
        """Offer a publication to the client of one subscription, unless that client has it already."""
        session = subscription.session
        if subscription.no_local and session.client_id == publication.publisher:
            return
        if session.rights is not None and not session.rights.may_read(publication.topic):
            return
        if may_be_had and subscription.has(publication):
            return
        if (
            (not publication.qos or not subscription.qos)
            and subscription.identifier is None
            and not (publication.retain and subscription.retain_as_published)
            and not (publication.born_s < now_s and publication.too_late(now_s, bound_s_of(subscription)))
        ):
            connection, options = session.ready(), subscription.options
            if connection is not None and connection.publish_plain(
                publication, now_s, told=options is not None
            ):
                if options is not None and options.qos.price != 1.0:
                    connection.count_price(options.qos.price)
                if publication.is_recorded:
                    session.note(delivery_of(publication, subscription, retain=False), now_s)
                return
        retain = publication.retain and subscription.retain_as_published
        delivery = delivery_of(publication, subscription, retain=retain)
        self._hand_over(delivery, subscription, now_s)

    def _hand_over(self, delivery: Delivery, subscription: BrokerSubscription, now_s: float) -> None:
        period = subscription.session.period
        if period is not None and delivery.qos and not period.covers(delivery.publication):
            return  # the client gets it by another broker, where its session was or is
        if delivery.publication.born_s < now_s and delivery.too_late(now_s):
            self._lose(delivery, Reason.EXPIRED, now_s)
        else:
            subscription.session.offer(delivery, now_s)

    def _offer_merged(
        self, publication: Publication, tree: tuple[TopicSubscribers, ...], now_s: float
    ) -> int:
        """Offer it once to each client, however many subscriptions it meets; shared ones count apart."""
        by_session: dict[Session, BrokerSubscription | list[BrokerSubscription]] = {}
        met = wanted = 0
        for subscribers in tree:
            for subscription in subscribers.wanting(publication):
                met += 1
                session = subscription.session
                if subscription.group is not None:
                    self._offer(publication, subscription, now_s)
                    wanted += 1
                elif not (
                    subscription.no_local and session.client_id == publication.publisher
                ) and not subscription.has(publication):
                    others = by_session.get(session)
                    if others is None:
                        by_session[session] = subscription
                    elif isinstance(others, list):
                        others.append(subscription)
                    else:
                        by_session[session] = [others, subscription]
        for subscriptions in by_session.values():
            if isinstance(subscriptions, BrokerSubscription):
                self._offer(publication, subscriptions, now_s)
                continue
            session = subscriptions[0].session
            if session.rights is None or session.rights.may_read(publication.topic):
                self._hand_over(merged_delivery(publication, subscriptions), subscriptions[0], now_s)
        self.met = met
        return wanted + len(by_session)


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


class TopicSubscribers:
    """All subscriptions with one topic filter."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        # By session and not by client id: one that has ended may stand beside the next one of its client.
        self.plain: dict[Session, BrokerSubscription] = {}
        self.shared: dict[str, SharedGroup] = {}  # by group
        self.is_plain = True  # no content filter and no shared subscription: all of them get everything
        self._index: MatchingIndex | None = None  # most patterns have no need of one
        self._filtered: list[BrokerSubscription | None] = []
        self._key: dict[Session, int] = {}
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
        session = subscription.session
        if subscription.group is not None:
            self.shared.setdefault(subscription.group, SharedGroup()).members.append(subscription)
        elif subscription.options is None:
            self.plain[session] = subscription
        else:
            key = self._free_keys.pop() if self._free_keys else len(self._filtered)
            if key == len(self._filtered):
                self._filtered.append(None)
            if self._index is None:
                self._index = MatchingIndex()
            self._index.add(key, subscription.options.filter)
            self._filtered[key] = subscription
            self._key[session] = key
        self.is_plain = not self._key and not self.shared

    def remove(self, subscription: BrokerSubscription) -> None:
        """Forget a subscription."""
        session = subscription.session
        if subscription.group is not None:
            shares = self.shared[subscription.group]
            shares.members.remove(subscription)
            if not shares.members:
                del self.shared[subscription.group]
        elif subscription.options is None:
            del self.plain[session]
        else:
            key = self._key.pop(session)
            assert self._index is not None, "a filter was taken in, so there is an index"
            self._index.remove(key)
            self._filtered[key] = None
            self._free_keys.append(key)
        self.is_plain = not self._key and not self.shared

    def wanting(self, publication: Publication) -> Iterable[BrokerSubscription]:
        """Yield every grant that this publication meets, one of each shared subscription."""
        yield from self.plain.values()
        if self._key and self._index is not None:
            for key in self._index.match(publication.attributes()).tolist():
                subscription = self._filtered[key]
                assert subscription is not None, (
                    "the index knows a subscription that the audience has forgotten"
                )
                yield subscription
        for shares in self.shared.values():
            picked = shares.pick(publication)
            if picked is not None:
                yield picked


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


def bound_s_of(subscription: BrokerSubscription) -> float:
    """Return how old what a subscription's client gets may be."""
    return math.inf if subscription.options is None else subscription.options.qos.delay_s_max


def delivery_of(
    publication: Publication,
    subscription: BrokerSubscription,
    *,
    retain: bool,
    kind: type[Delivery] = Delivery,
) -> Delivery:
    """Return what one subscription's client gets."""
    options = subscription.options
    return kind(
        publication,
        qos=min(publication.qos, subscription.qos),
        retain=retain,
        subscription_ids=None if subscription.identifier is None else [subscription.identifier],
        told=options is not None,
        bound_s=bound_s_of(subscription),
        price=1.0 if options is None else options.qos.price,
        share=None if subscription.group is None else subscription,
    )


def merged_delivery(
    publication: Publication, subscriptions: list[BrokerSubscription], kind: type[Delivery] = Delivery
) -> Delivery:
    """Return the one message for several subscriptions of a client: the best that any of them is to get."""
    return kind(
        publication,
        qos=min(publication.qos, max(each.qos for each in subscriptions)),
        retain=publication.retain and any(each.retain_as_published for each in subscriptions),
        subscription_ids=[each.identifier for each in subscriptions if each.identifier is not None] or None,
        told=any(each.options is not None for each in subscriptions),
        bound_s=max(map(bound_s_of, subscriptions)),
        price=max(1.0 if each.options is None else each.options.qos.price for each in subscriptions),
    )


def warm_up() -> None:
    """Load or compile the kernels of content filters before a client waits for them."""
    index = MatchingIndex()
    wanted = parse_filter("a > 1 OR b = 'x'")
    for key in range(TAIL_ROWS_MAX + 2):  # so many that an index is built
        index.add(key, wanted)
    index.match({"a": 2.0, "b": "y"})
    index.remove(0)
