"""Does an extension hear what happens in a hub, in order, and do its decisions count?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.core.connection import Connection
from betimes.broker.core.extension import Decision, Extension
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.mqtt.reason_codes import GRANTED, ConnectCode, PublishCode, SubscribeCode


class Listening(Extension):
    """Notes the events it hears; refuses what it is told to."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.refused_client = ""
        self.refused_filter = ""

    def connecting(
        self,
        connection: Connection,
        _packet: mqtt5.ConnectPacket,
        client_id: str,
        _user: str | None,
        _now_s: float,
    ) -> bool:
        if client_id == self.refused_client:
            connection.refuse(ConnectCode.BANNED, "not you")
            return False
        return True

    def admit(self, grant: BrokerSubscription, _now_s: float) -> Decision | None:
        if not self.refused_filter:
            return None
        return Decision(grant.pattern != self.refused_filter, f"{grant.pattern} was considered")

    def control(self, _packet: mqtt5.PublishPacket, topic: str, _now_s: float) -> PublishCode | None:
        return PublishCode.SUCCESS if topic == "$betimes/known" else None

    def session_opened(self, session: Session, will: mqtt5.Will | None, now_s: float) -> None:
        self.heard.append(("opened", session.client_id, will is not None, now_s))

    def client_came(self, session: Session, _packet: mqtt5.ConnectPacket, now_s: float) -> None:
        self.heard.append(("came", session.client_id, now_s))

    def client_left(self, session: Session, will: mqtt5.Will | None, now_s: float) -> None:
        self.heard.append(("left", session.client_id, will is not None, now_s))

    def subscribed(self, written: str, _grant: BrokerSubscription, now_s: float) -> None:
        self.heard.append(("subscribed", written, now_s))

    def unsubscribed(self, written: str, _grant: BrokerSubscription, now_s: float) -> None:
        self.heard.append(("unsubscribed", written, now_s))

    def session_ended(self, session: Session, now_s: float) -> None:
        self.heard.append(("ended", session.client_id, now_s))

    def will_published(self, client_id: str) -> None:
        self.heard.append(("will", client_id))

    def tick(self, now_s: float) -> None:
        self.heard.append(("tick", now_s))


def extended() -> tuple[Hub, Listening]:
    hub, extension = new_hub(), Listening()
    hub.extend(extension)
    return hub, extension


def test_an_extension_hears_of_a_session_from_its_beginning_to_its_end():
    hub, extension = extended()
    client = Client(hub, "ann", now_s=1.0, will=mqtt5.Will("gone"), session_expiry_interval=5)
    client.subscribe("$share/g/t")
    client.now_s = 2.0
    client.ask(mqtt5.UnsubscribePacket(2, ["$share/g/t", "never"]))
    client.subscribe("u")
    client.connection.lost(3.0)
    hub.tick(8.0)
    assert extension.heard == [
        ("opened", "ann", True, 1.0),
        ("came", "ann", 1.0),
        ("subscribed", "$share/g/t", 1.0),
        ("unsubscribed", "$share/g/t", 2.0),
        ("subscribed", "u", 2.0),
        ("left", "ann", True, 3.0),
        ("will", "ann"),
        ("ended", "ann", 8.0),
        ("unsubscribed", "u", 8.0),
        ("tick", 8.0),
    ]


def test_who_says_goodbye_leaves_without_a_will():
    hub, extension = extended()
    Client(hub, "ann", will=mqtt5.Will("gone")).send(mqtt5.DisconnectPacket())
    assert extension.heard[2:] == [("left", "ann", False, 0.0), ("ended", "ann", 0.0)]


def test_a_subscription_in_place_of_another_is_heard_of_as_both():
    hub, extension = extended()
    client = Client(hub)
    client.subscribe("t")
    client.subscribe("t", qos=1)
    assert [event[0] for event in extension.heard[2:]] == ["subscribed", "unsubscribed", "subscribed"]


def test_a_client_that_an_extension_refuses_has_no_session():
    hub, extension = extended()
    extension.refused_client = "eve"
    assert Client(hub, "eve").connack.reason_code is ConnectCode.BANNED
    assert Client(hub, "ann").connack.reason_code is ConnectCode.SUCCESS
    assert set(hub.sessions) == {"ann"}


def test_the_first_extension_that_refuses_a_client_is_the_last_that_is_asked():
    hub, first = extended()
    second = Listening()
    hub.extend(second)
    first.refused_client = second.refused_client = "eve"
    client = Client(hub, "eve")
    assert client.connack.reason_code is ConnectCode.BANNED
    assert client.first == []
    assert not second.heard


def test_an_extension_decides_on_each_subscription():
    hub, extension = extended()
    extension.refused_filter = "b"
    suback = Client(hub).subscribe("a", "b")
    assert suback.reason_codes == [GRANTED[0], SubscribeCode.QUOTA_EXCEEDED]
    assert suback.reason_str == "a was considered; b was considered"
    assert list(hub.sessions["c1"].subscriptions) == ["a"]


@pytest.mark.parametrize(
    ("topic", "code"), [("$betimes/known", 0), ("$betimes/other", 0x87), ("$SYS/x", 0x87)]
)
def test_an_extension_may_take_in_what_is_published_below_its_topics(topic, code):
    hub, _ = extended()
    (answer,) = Client(hub).publish(topic, qos=1)
    assert answer.reason_code.value == code
    assert hub.counters.lost.total() == (code != 0)


def test_an_extension_that_overrides_nothing_changes_nothing():
    hub = new_hub()
    hub.extend(Extension())
    client = Client(hub, will=mqtt5.Will("gone"))
    assert client.subscribe("t", properties={"bandwidth": "any"}).reason_codes == [GRANTED[0]]
    (echo,) = client.publish("t", b"x")
    assert (echo.topic, echo.payload) == ("t", b"x")
    (answer,) = client.publish("$betimes/x", qos=1)
    assert answer.reason_code is PublishCode.NOT_AUTHORIZED
    client.connection.lost(0.0)
    hub.tick(1.0)
    assert not hub.sessions
