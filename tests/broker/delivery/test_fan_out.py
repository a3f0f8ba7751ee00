"""Does everybody who wants a publication get it, once and as they asked?"""

from __future__ import annotations

import mqtt5
from tests.broker.talking import Client, new_hub

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.fan_out import FanOut, delivery_of
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.model.telemetry import Reason
from betimes.mqtt.subscribe_options import read_options


def publication(topic="news", *, qos=0, born_s=0.0):
    packet = mqtt5.PublishPacket(topic, b"x", qos=mqtt5.QoS(qos), packet_id=1 if qos else None)
    return Publication(packet, topic, born_s=born_s, origin="b1", number=1)


class Stage:
    """An offering with clients of a hub, and what was lost."""

    def __init__(self):
        self.lost: list[tuple[str, Reason]] = []
        self.hub = new_hub()
        self.fan_out = FanOut(self._lose)

    def _lose(self, delivery: Delivery, reason: Reason, _now_s: float) -> None:
        self.lost.append((delivery.publication.topic, reason))

    def client(self, name: str, pattern: str = "news", **options) -> Client:
        client = Client(self.hub, name)
        asked = read_options(options.pop("options", {}).items())
        self.fan_out.tree.add(
            BrokerSubscription(session=self.hub.sessions[name], pattern=pattern, options=asked, **options)
        )
        return client


def test_it_says_how_many_want_it():
    stage = Stage()
    assert stage.fan_out.fan_out_all(publication(), 0.0) == 0
    alice, bob = stage.client("alice"), stage.client("bob", options={"filter": "x > 1"})
    assert stage.fan_out.fan_out_all(publication(), 0.0) == 1
    assert (len(alice.got()), len(bob.got())) == (1, 0)


def test_overlapping_subscriptions_bring_one_copy():
    stage = Stage()
    alice = stage.client("alice")
    stage.fan_out.tree.add(BrokerSubscription(session=stage.hub.sessions["alice"], pattern="#", qos=1))
    assert stage.fan_out.fan_out_all(publication(qos=1), 0.0) == 1
    assert len(alice.got()) == 1


def test_what_comes_too_late_is_lost_for_those_who_set_a_bound():
    stage = Stage()
    hasty = stage.client("hasty", options={"max-delay": "1s"})
    patient = stage.client("patient")
    stage.fan_out.tree.add(
        BrokerSubscription(
            session=stage.hub.sessions["hasty"], pattern="#", options=read_options([("max-delay", "2s")])
        )
    )
    stage.fan_out.fan_out_all(publication(born_s=0.0), 3.0)
    assert (len(hasty.got()), len(patient.got())) == (0, 1)
    assert stage.lost == [("news", Reason.EXPIRED)]


def test_what_a_member_of_a_group_did_not_get_another_gets():
    stage = Stage()
    stage.client("alice", group="g", qos=1)
    bob = stage.client("bob", group="g", qos=1)
    first = stage.fan_out.tree.hearing("news")[0].shared["g"].members[0]
    stage.fan_out.tree.remove(first)
    stage.fan_out.pass_on(delivery_of(publication(qos=1), first, retain=False), 0.0)
    assert len(bob.got()) == 1
    plain = BrokerSubscription(session=stage.hub.sessions["alice"], pattern="news")
    stage.fan_out.pass_on(delivery_of(publication(), plain, retain=False), 0.0)
    assert stage.lost == [("news", Reason.SESSION_ENDED)]
