"""Does a hub tell the network that it is part of all that it should, and get on without one?"""

from __future__ import annotations

import math

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.core.connect import LINK
from betimes.broker.core.connection import Connection
from betimes.broker.core.network import Network
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.mqtt.reason_codes import ConnectCode, PublishCode


class Listening(Network):
    """A network that notes what it is told; elsewhere there is one subscriber to everything."""

    is_alone = False

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []

    def subscribed(self, grant: BrokerSubscription) -> None:
        self.heard.append(("subscribed", grant.pattern))

    def unsubscribed(self, grant: BrokerSubscription) -> None:
        self.heard.append(("unsubscribed", grant.pattern))

    def publish(self, publication: Publication, _now_s: float) -> int:
        self.heard.append(("published", publication.topic))
        return 1

    def answer(self, connection: Connection, packet: mqtt5.ConnectPacket, _now_s: float) -> None:
        self.heard.append(("answered", packet.client_id))
        connection.refuse(ConnectCode.SERVER_BUSY, "later")

    def tick(self, now_s: float) -> None:
        self.heard.append(("tick", now_s))

    def close(self, now_s: float) -> None:
        self.heard.append(("closed", now_s))


def test_a_network_hears_of_subscriptions_publications_brokers_and_time():
    hub, network = new_hub(), Listening()
    early = Client(hub, "early")
    early.subscribe("before")
    hub.join(network)
    early.subscribe("after")
    (answer,) = early.publish("t", qos=1)
    assert answer.reason_code is PublishCode.SUCCESS  # somebody elsewhere wants it
    early.publish("$SYS/no")
    assert Client(hub, "b2", user_properties=[(LINK, "1")]).connack.reason_code is ConnectCode.SERVER_BUSY
    hub.tick(1.0)
    early.connection.lost(2.0)
    hub.shut_down(3.0)
    assert network.heard == [
        ("subscribed", "before"),
        ("subscribed", "after"),
        ("published", "t"),
        ("answered", "b2"),
        ("tick", 1.0),
        ("unsubscribed", "before"),
        ("unsubscribed", "after"),
        ("closed", 3.0),
    ]


def test_what_comes_from_afar_reaches_the_clients_here_and_goes_no_further():
    hub, network = new_hub(), Listening()
    hub.join(network)
    client = Client(hub)
    client.subscribe("t")
    packet = mqtt5.PublishPacket("t", b"far")
    hub.publishing.take_from_afar(Publication(packet, "t", born_s=0.0, origin="b2", number=7), 0.0)
    assert client.got() == [("t", b"far")]
    assert network.heard == [("subscribed", "t")]


def test_a_broker_joins_one_network():
    hub = new_hub()
    hub.join(Listening())
    with pytest.raises(AssertionError, match="one network"):
        hub.join(Listening())


def test_who_is_alone_waits_for_nothing_and_knows_nobody():
    network = Network()
    assert (network.is_alone, network.wake_at_s()) == (True, math.inf)
    assert (list(network.brokers()), network.first_number_of("b2"), network.neighbours_down()) == ([], 0, [])
