"""Does each topic reach those who subscribed to it, and of a shared subscription one?"""

from __future__ import annotations

import mqtt5
from tests.broker.talking import Client, new_hub, new_session

from betimes.broker.access.acl import AccessList
from betimes.broker.delivery.fan_out import (
    SharedGroup,
    SubscriptionTree,
    TopicSubscribers,
    warm_up,
)
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.model.positions import Have
from betimes.mqtt.subscribe_options import read_options


def grant(
    client_id: str, pattern: str = "t", *, text: str = "", group: str | None = None
) -> BrokerSubscription:
    wish = read_options([("filter", text)]) if text else None
    return BrokerSubscription(session=new_session(client_id), pattern=pattern, group=group, options=wish)


def publication(topic: str = "t", **attributes: str) -> Publication:
    packet = mqtt5.PublishPacket(topic, b"x", user_properties=list(attributes.items()))
    return Publication(packet, topic, born_s=0.0)


def names(subscriptions) -> list[str]:
    return sorted(each.session.client_id for each in subscriptions)


def test_an_audience_is_whoever_subscribed_and_whose_filter_is_met():
    subscribers = TopicSubscribers("t")
    assert not subscribers
    plain, fast, slow = grant("plain"), grant("fast", text="speed > 50"), grant("slow", text="speed < 50")
    subscribers.add(plain)
    was_plain = subscribers.is_plain
    for each in (fast, slow):
        subscribers.add(each)
    assert (was_plain, subscribers.is_plain) == (True, False)
    assert names(subscribers.wanting(publication(speed="61"))) == ["fast", "plain"]
    subscribers.remove(fast)
    assert names(subscribers.wanting(publication(speed="61"))) == ["plain"]
    subscribers.add(grant("again", text="speed > 60"))  # in the place of the one that left
    assert names(subscribers.wanting(publication(speed="61"))) == ["again", "plain"]
    subscribers.remove(plain)
    assert subscribers


def test_kernels_can_be_had_before_they_are_needed():
    warm_up()
    subscribers = TopicSubscribers("t")
    subscribers.add(grant("fast", text="speed > 50"))
    assert names(subscribers.wanting(publication(speed="61"))) == ["fast"]


def test_patterns_come_and_go():
    tree = SubscriptionTree()
    one, other = grant("a", "x/+"), grant("b", "x/#")
    tree.add(one)
    tree.add(other)
    assert {each.pattern for each in tree.hearing("x/1")} == {"x/+", "x/#"}
    assert tree.count == 2
    tree.remove(one)
    assert [each.pattern for each in tree.hearing("x/1")] == ["x/#"]
    tree.remove(other)
    assert tree.hearing("x/1") == ()
    assert tree.count == 0


def connected(client_id: str, hub) -> BrokerSubscription:
    client = Client(hub, client_id)
    assert client.connection.session is not None
    return BrokerSubscription(session=client.connection.session, pattern="t", group="g")


def test_a_share_goes_to_who_can_take_it_then_to_who_is_busy_then_to_who_is_away():
    hub, shares = new_hub(), SharedGroup()
    away, busy, ready = grant("away", group="g"), connected("busy", hub), connected("ready", hub)
    shares.members += [away, busy, ready]
    assert busy.session.connection is not None
    busy.session.connection.flow.blocked = True
    assert [shares.pick(publication()) for _ in range(2)] == [ready, ready]
    shares.members.remove(ready)
    assert shares.pick(publication()) is busy
    shares.members.remove(busy)
    assert shares.pick(publication()) is away


def test_a_share_goes_only_to_who_wants_it_and_may_have_it():
    shares = SharedGroup()
    shares.members += [grant("slow", text="speed < 50"), grant("fast", text="speed > 50")]
    for _ in range(3):
        picked = shares.pick(publication(speed="61"))
        assert picked is not None
        assert picked.session.client_id == "fast"
    shares.members[1].session.rights = AccessList.read("topic write t", "list").rights(None, "fast")
    assert shares.pick(publication(speed="61")) is None
    assert shares.pick(publication()) is None


def test_another_member_stands_in_for_one_who_left():
    tree = SubscriptionTree()
    left, stays = grant("left", group="g"), grant("stays", group="g")
    for each in (left, stays, grant("other", group="h")):
        tree.add(each)
    tree.remove(left)
    assert tree.stand_in(left, publication()) is stays
    tree.remove(stays)
    assert tree.stand_in(left, publication()) is None


def test_what_a_client_that_came_back_has_is_known():
    hub = new_hub()
    Client(hub, "c1")
    grant = BrokerSubscription(session=hub.sessions["c1"], pattern="t", have={"b2": Have(floor=5)})
    packet = mqtt5.PublishPacket("t", b"x")
    numbers = [n for n in (4, 5, 6) if grant.has(Publication(packet, "t", born_s=0.0, origin="b2", number=n))]
    assert numbers == [4, 5]
    assert not grant.has(Publication(packet, "t", born_s=0.0, origin="b3", number=1))


def test_only_what_somebody_came_back_with_may_be_had():
    tree, packet = SubscriptionTree(), mqtt5.PublishPacket("t", b"x")
    first, second = (
        BrokerSubscription(
            session=new_session(name), pattern="t", have={"b2": Have(floor=floor, above=above)}
        )
        for name, floor, above in (("c1", 5, frozenset({8})), ("c2", 3, frozenset()))
    )

    def may_be_had() -> list[int]:
        each = {n: Publication(packet, "t", born_s=0.0, origin="b2", number=n) for n in (5, 8, 9)}
        return [number for number, publication in each.items() if tree.may_be_had(publication)]

    assert may_be_had() == []
    tree.add(first)
    tree.add(second)
    assert may_be_had() == [5, 8]
    tree.remove(first)
    tree.remove(second)
    assert may_be_had() == []
