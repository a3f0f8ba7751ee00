"""Fan-out: a publication goes to every client whose subscriptions it matches, once to each.

What goes to many clients unchanged is encoded once; what needs a packet id, a subscription identifier or a
queue becomes a `Delivery` of its own.
"""

from __future__ import annotations

import math

from betimes.broker.delivery.delivery import Delivery, Lose
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.recently_delivered import had_of
from betimes.broker.delivery.session import BrokerSubscription
from betimes.broker.delivery.subscriptions import SubscriptionTree, TopicSubscribers
from betimes.model.telemetry import Reason


class FanOut:
    """The subscriptions of a server, and how publications reach them."""

    def __init__(self, lose: Lose) -> None:
        self.tree = SubscriptionTree()
        self._lose = lose

    def fan_out_all(self, publication: Publication, now_s: float) -> int:
        """Offer a publication to all subscribers that want it; return how many they are."""
        tree = self.tree.hearing(publication.topic)
        if not tree:
            return 0
        if len(tree) > 1:
            return self._offer_merged(publication, tree, now_s)
        subscribers, may_be_had = tree[0], self.tree.may_be_had(publication)
        # An offer may end a connection, never a subscription: the dictionary does not change under way.
        if subscribers.is_plain:
            for subscription in subscribers.plain.values():
                self._offer(publication, subscription, now_s, may_be_had)
            return len(subscribers.plain)
        wanted = 0
        for subscription in subscribers.wanting(publication):
            self._offer(publication, subscription, now_s, may_be_had)
            wanted += 1
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
        arrived = subscription.session.arrived
        if arrived is not None and delivery.qos and not arrived.is_new(had_of(delivery)):
            return  # it came by the broker where the session was before
        if delivery.publication.born_s < now_s and delivery.too_late(now_s):
            self._lose(delivery, Reason.EXPIRED, now_s)
        else:
            subscription.session.offer(delivery, now_s)

    def _offer_merged(
        self, publication: Publication, tree: tuple[TopicSubscribers, ...], now_s: float
    ) -> int:
        """Offer it once to each client, however many subscriptions it meets; shared ones count apart."""
        by_client: dict[str, BrokerSubscription | list[BrokerSubscription]] = {}
        wanted = 0
        for subscribers in tree:
            for subscription in subscribers.wanting(publication):
                client_id = subscription.session.client_id
                if subscription.group is not None:
                    self._offer(publication, subscription, now_s)
                    wanted += 1
                elif not (
                    subscription.no_local and client_id == publication.publisher
                ) and not subscription.has(publication):
                    others = by_client.get(client_id)
                    if others is None:
                        by_client[client_id] = subscription
                    elif isinstance(others, list):
                        others.append(subscription)
                    else:
                        by_client[client_id] = [others, subscription]
        for subscriptions in by_client.values():
            if isinstance(subscriptions, BrokerSubscription):
                self._offer(publication, subscriptions, now_s)
                continue
            session = subscriptions[0].session
            if session.rights is None or session.rights.may_read(publication.topic):
                self._hand_over(merged_delivery(publication, subscriptions), subscriptions[0], now_s)
        return wanted + len(by_client)


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
