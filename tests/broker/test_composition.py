"""Does a hub become part of a network with all that it knows?"""

from __future__ import annotations

from tests.broker.networks import Net
from tests.broker.talking import Client, new_hub

from betimes.broker.composition import federate
from betimes.model.network_settings import NetworkSettings


def test_what_clients_want_already_is_in_the_first_bulletin():
    hub = new_hub()
    Client(hub, "alice").subscribe("news/#", qos=1)
    federation = federate(hub, NetworkSettings(secret="hush"), epoch=1, store=None, recorder=None)
    federation.begin()
    (wish,) = federation.bulletins.demand_of("b1").values()
    assert wish.pattern == "news/#"


def test_what_cannot_be_forwarded_is_counted_by_the_hub():
    net = Net("a", "b")
    net.join("a", "b")
    net.run(1.0)
    net.client("b", "alice").subscribe("news", properties={"max-delay": "1s"})
    net.run(0.5)
    net.cut("a", "b")
    net.client("a", "bob").publish("news")
    net.run(3.0)
    assert sum(net.hubs["a"].counters.lost.values()) == 1
