"""Does a peer tell of its parents, children and delays, when they change?"""

from __future__ import annotations

import json

from tests.broker.peer_networks import PeerNet, address
from tests.broker.peers.test_overlay import publish

from betimes.broker.peers.status import STATUS_TOPIC, StatusPublisher, peer_status


def net_of_three() -> PeerNet:
    net = PeerNet()
    net.start("a", published="x >= 0", places=1)
    net.start("b", join="a", wanted="x >= 50", delay_max=2.0, places=1)
    net.run(5.0)
    net.start("c", join="a", wanted="x >= 75", delay_max=3.0)
    net.run(8.0)
    return net


def test_parents_children_and_delays_are_told():
    net = net_of_three()
    publish(net.client("a", "w"), net, 80.0, 1.0)
    publish(net.client("a", "w"), net, 60.0, 1.0)
    net.run(0.1)
    status = peer_status(net.overlay("b"))
    assert status["parents"] == {"a:1+": ["1"]}
    assert status["children"] == {address("c"): ["101", "111"]}
    assert (status["dz"], status["uncovered"], status["late"]) == (["1"], [], [])
    assert (status["delay"], status["max_delay"], status["claims"]) == (1.0, 2.0, 2.0)
    assert (status["wanted"], status["in_time"], status["on_time_share"]) == (2, 2, 1.0)
    deeper = peer_status(net.overlay("c"))
    assert deeper["parents"] == {address("b"): ["101", "111"]}
    assert (deeper["delay"], deeper["delay_most"], deeper["delay_mean"]) == (2.0, 2.0, 2.0)
    publisher = peer_status(net.overlay("a"))
    assert publisher["publishing_to"] == {address("b"): ["1"]}
    assert (publisher["publishes"], publisher["published"], publisher["delay"]) == (["ε"], 2, None)
    json.dumps([status, deeper, publisher])


def test_it_is_told_when_it_has_changed_and_not_too_often():
    net = net_of_three()
    told = list[tuple[str, bytes]]()
    telling = StatusPublisher(net.overlay("b"), lambda topic, text, now_s: told.append((topic, text)))
    assert telling.tick(100.0) == told[0][1]
    assert told[0][0] == STATUS_TOPIC
    assert telling.tick(100.5) is None
    assert telling.tick(101.5) is None
    publish(net.client("a", "w"), net, 80.0, 1.0)
    net.run(0.1)
    assert telling.tick(103.0) is not None
    assert len(told) == 2
