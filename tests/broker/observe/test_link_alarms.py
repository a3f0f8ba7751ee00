"""Does a broker tell of links that go down and come back, once each?"""

from __future__ import annotations

import json

from tests.broker.networks import Net

from betimes.broker.observe.link_alarms import START_S, LinkAlarms
from betimes.broker.observe.prometheus import exposition
from betimes.broker.observe.statistics import gathered


def told(client):
    return [(topic, json.loads(payload)["state"]) for topic, payload in client.got()]


def test_a_link_that_goes_down_is_told_once_and_again_when_it_is_back():
    net = Net("a", "b")
    net.join("a", "b")
    net.run(1.0)
    alarms = LinkAlarms(net.brokers["a"].observed, now_s=net.now_s)
    ann = net.client("a", "ann")
    ann.subscribe("$betimes/alarm/#")
    net.run(START_S)
    alarms.tick(net.now_s)
    assert told(ann) == []
    net.cut("a", "b")
    for _ in range(3):
        net.run(1.0)
        alarms.tick(net.now_s)
    assert told(ann) == [("$betimes/alarm/link/b", "begins")]
    late = net.client("a", "late")
    late.subscribe("$betimes/alarm/#")
    assert told(late) == [("$betimes/alarm/link/b", "begins")], "it is retained"
    net.join("a", "b")
    net.run(1.0)
    alarms.tick(net.now_s)
    assert told(ann) == [("$betimes/alarm/link/b", "ends")]


def test_links_that_come_up_after_the_start_of_a_broker_raise_no_alarm():
    net = Net("a", "b")
    alarms = LinkAlarms(net.brokers["a"].observed, now_s=net.now_s)
    ann = net.client("a", "ann")
    ann.subscribe("$betimes/alarm/#")
    net.run(START_S - 1.0)
    alarms.tick(net.now_s)
    net.join("a", "b")
    net.run(2.0)
    alarms.tick(net.now_s)
    assert told(ann) == []


def test_a_silent_link_counts_as_down_before_it_is_given_up():
    """A neighbour that is stopped keeps its socket open: before, the link looked healthy."""
    net = Net("a", "b", lost_after_s=60.0)
    net.join("a", "b")
    net.run(5.0)
    federation = net.federation("a")
    assert federation.link_health(net.now_s)["b"].is_up
    now_s = net.now_s + 2.5
    assert not federation.link_health(now_s)["b"].is_up
    metrics = exposition(gathered(net.brokers["a"].observed, now_s), 0.0)
    assert 'betimes_link_up{neighbour="b"} 0.0' in metrics


def test_the_backlog_of_links_and_what_has_no_route_are_counted():
    net = Net("a", "b", "c")
    net.join("a", "b", s_per_kb=1.0, rate_kb_per_s=1.0)
    net.join("a", "c")
    net.run(1.0)
    for name in "bc":
        net.client(name, f"at {name}").subscribe("news")
    net.run(1.0)
    ann = net.client("a", "ann")
    for _ in range(10):
        ann.publish("news", b"." * 1000)
    health = net.federation("a").link_health(net.now_s)
    assert 5 <= health["b"].backlog <= 10
    assert health["c"].backlog <= health["b"].backlog
    assert net.federation("a").broker.waiting_without_route() == 0
    net.cut("a", "b")
    net.cut("a", "c")
    net.run(0.25)
    assert net.federation("a").broker.waiting_without_route() == net.federation("a").broker.queue_length > 0
