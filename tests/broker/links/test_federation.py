"""Does what is published at one broker reach those who want it at others, in time and once?"""

from __future__ import annotations

from itertools import pairwise

import mqtt5
import pytest
from tests.broker.networks import Net

from betimes.model.telemetry import Reason


def chain(*names: str, **settings):
    net = Net(*names, **settings)
    for one, other in pairwise(names):
        net.join(one, other)
    net.run(1.0)
    return net


def test_what_is_published_at_one_broker_reaches_a_subscriber_at_another():
    net = chain("a", "b")
    alice = net.client("b", "alice")
    alice.subscribe("news/#")
    net.run(0.1)
    net.client("a", "bob").publish("news/today", b"hello")
    net.run(0.1)
    assert alice.got() == [("news/today", b"hello")]


def test_it_reaches_the_far_end_of_a_chain_once():
    net = chain("a", "b", "c", "d")
    alice = net.client("d", "alice")
    alice.subscribe("news/#", qos=1)
    net.run(0.1)
    bob = net.client("a", "bob")
    for number in range(20):
        bob.publish("news/today", str(number).encode(), qos=1)
    net.run(1.0)
    assert sorted(int(payload) for _, payload in alice.got()) == list(range(20))


def test_only_what_meets_the_filter_travels():
    net = chain("a", "b")
    alice = net.client("b", "alice")
    alice.subscribe("cars", properties={"filter": "speed > 50"})
    net.run(0.1)
    bob = net.client("a", "bob")
    before = net.bytes_sent
    for _ in range(100):
        bob.publish("cars", b"x" * 1000, user_properties=[("speed", "10")])
    bob.publish("cars", b"fast", user_properties=[("speed", "61")])
    net.run(0.2)
    assert alice.got() == [("cars", b"fast")]
    assert net.bytes_sent - before < 5_000


def test_age_adds_up_along_the_way():
    net = Net("a", "b", "c")
    net.join("a", "b", delay_s=0.2)
    net.join("b", "c", delay_s=0.3)
    net.run(5.0)
    alice = net.client("c", "alice")
    alice.subscribe("news", properties={"max-delay": "10s"})
    net.run(2.0)
    net.client("a", "bob").publish("news")
    net.run(2.0)
    (packet,) = alice.read()
    assert float(dict(packet.user_properties)["$age"]) == pytest.approx(500, abs=5)


def test_what_comes_too_late_for_one_is_given_up_with_a_reason():
    net = Net("a", "b")
    net.join("a", "b", delay_s=0.5)
    net.run(5.0)
    hasty, patient = net.client("b", "hasty"), net.client("b", "patient")
    hasty.subscribe("news", properties={"max-delay": "100ms"})
    patient.subscribe("news", properties={"max-delay": "1s"})
    net.run(2.0)
    net.client("a", "bob").publish("news")
    net.run(2.0)
    assert (hasty.got(), len(patient.got())) == ([], 1)
    assert net.hubs["b"].counters.lost[Reason.EXPIRED] == 1


def test_what_cannot_be_in_time_is_not_even_sent():
    net = Net("a", "b")
    net.join("a", "b", delay_s=0.5)
    net.run(10.0)
    alice = net.client("b", "alice")
    alice.subscribe("news", properties={"max-delay": "100ms"})
    net.run(2.0)
    before = net.bytes_sent
    net.client("a", "bob").publish("news", b"x" * 10_000)
    net.run(2.0)
    assert net.hubs["a"].counters.lost[Reason.HOPELESS] == 1
    assert net.bytes_sent - before < 5_000


def test_messages_find_another_way_when_a_link_breaks_and_none_comes_twice():
    net = Net("a", "b", "c", "d")
    for one, other in (("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")):
        net.join(one, other, s_per_kb=0.01)
    net.run(2.0)
    alice = net.client("d", "alice")
    alice.subscribe("news", qos=1)
    net.run(0.5)
    bob = net.client("a", "bob")
    for number in range(50):
        bob.publish("news", str(number).encode() + b" " * 1000, qos=1)
    net.run(0.1)
    net.cut("a", "b")
    net.run(5.0)
    assert sorted(int(payload) for _, payload in alice.got()) == list(range(50))


def test_a_broker_that_comes_back_is_served_again():
    net = chain("a", "b", "c")
    net.kill("c")
    net.run(1.0)
    net.start("c")
    net.join("b", "c")
    net.run(1.0)
    alice = net.client("c", "alice")
    alice.subscribe("news")
    net.run(0.2)
    net.client("a", "bob").publish("news", b"again")
    net.run(0.2)
    assert alice.got() == [("news", b"again")]


def test_what_the_earlier_life_of_a_broker_wanted_is_forgotten():
    net = chain("a", "b")
    net.client("b", "alice").subscribe("news")
    net.run(0.2)
    net.kill("b")
    net.start("b")
    net.join("a", "b")
    net.run(1.0)
    assert net.client("a", "bob").publish("news", qos=1)[0].reason_code.value == 0x10  # nobody wants it


def test_unsubscribing_is_heard_far_away():
    net = chain("a", "b", "c")
    alice = net.client("c", "alice")
    alice.subscribe("news")
    net.run(0.2)
    bob = net.client("a", "bob")
    assert bob.publish("news", qos=1)[0].reason_code.value == 0
    alice.ask(mqtt5.UnsubscribePacket(2, ["news"]))
    net.run(0.2)
    assert bob.publish("news", qos=1)[0].reason_code.value == 0x10


def test_a_broker_with_another_secret_is_refused(caplog):
    net = Net("a", "b")
    net.start("c", secret="other")
    net.join("c", "a")
    net.run(1.0)
    assert net.ends("a") == {}
    assert "does not know the secret of this network" in caplog.text


def test_two_halves_that_meet_know_of_each_other():
    net = Net("a", "b", "c", "d")
    net.join("a", "b")
    net.join("c", "d")
    net.run(1.0)
    alice = net.client("d", "alice")
    alice.subscribe("news")
    net.run(0.5)
    net.join("b", "c")
    net.run(0.5)
    net.client("a", "bob").publish("news", b"hello")
    net.run(0.5)
    assert alice.got() == [("news", b"hello")]


def test_a_silent_neighbour_is_given_up():
    net = chain("a", "b")
    net._pipes.clear()  # nothing arrives any more, and nobody hangs up
    net.run(5.0)
    assert net.ends("a") == {}


def test_an_overloaded_link_is_scheduled_by_price():
    net = Net("a", "b", strategy="eb")
    net.join("a", "b", rate_kb_per_s=10.0)
    net.run(5.0)
    rich, poor = net.client("b", "rich"), net.client("b", "poor")
    rich.subscribe("gold", properties={"max-delay": "2s", "price": "10"})
    poor.subscribe("tin", properties={"max-delay": "2s", "price": "1"})
    net.run(0.5)
    bob = net.client("a", "bob")
    for _ in range(20):
        bob.now_s = net.now_s
        bob.publish("tin", b"x" * 1000)
        bob.publish("gold", b"x" * 1000)
        net.run(0.1)
    net.run(5.0)
    got_rich, got_poor = len(rich.got()), len(poor.got())
    assert got_rich == 20
    lost = net.hubs["a"].counters.lost
    assert got_poor + lost[Reason.HOPELESS] + lost[Reason.EXPIRED] == 20
    assert lost[Reason.HOPELESS] > 0


def test_what_is_published_anywhere_is_known_everywhere():
    net = chain("a", "b", "c")
    bob = net.client("a", "bob")
    for _ in range(20):
        bob.publish("cars/a4", b"x" * 920)
    net.run(25.0)
    federation = net.federation("c")
    assert federation is not None
    (advert,) = federation.bulletins.advertisements()
    assert (advert.publisher, advert.broker, advert.topic) == ("bob", "a", "cars")
    assert advert.size_kb_mean == pytest.approx(1.0, abs=0.05)
    assert federation.speeds_s_per_kb.keys() == {"b"}
