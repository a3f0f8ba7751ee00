"""Is bandwidth reserved for who asks, refused with what would fit, re-made where it is lost, and given back?

a and f are joined by two ways, over b and c, and over d and e; links carry 60 KB/s each way, of which 54 may
be promised.
"""

from __future__ import annotations

import json
from typing import Any

import mqtt5
import pytest
from tests.broker.networks import Net
from tests.broker.talking import Client, new_hub

from betimes.broker.access.acl import AccessList
from betimes.broker.core.subscribe import NOTHING_TO_RESERVE
from betimes.broker.guarantees.guarantees import AGAIN_S_MIN
from betimes.broker.links.reservations import ANSWER_S_MAX
from betimes.model.network_settings import LinkTerms
from betimes.reservations.outcomes import RefusalReason, Refused, why
from betimes.reservations.overlay.identifiers import closest, contact_of, rendezvous_key

pytestmark = pytest.mark.long

LINKS = (("a", "b"), ("b", "c"), ("c", "f"), ("a", "d"), ("d", "e"), ("e", "f"))
RATE = 60.0
QUOTA_EXCEEDED, UNSUPPORTED = 0x97, 0x83


class Six(Net):
    """Six brokers, a publisher of cars at a, and who asks at f."""

    def __init__(self, **settings):
        terms = tuple([LinkTerms(to=name, rate_kb_per_s=RATE) for name in "abcdef"])
        super().__init__(*"abcdef", links=terms, **settings)
        for one, other in LINKS:
            self.join(one, other, rate_kb_per_s=RATE)
        self.run(1.0)
        self.publisher = self.client("a", "pub", user_properties=[("advertise", "cars = 20KB/s")])
        self.run(0.5)

    def ask(self, name, *topics, broker="f", wait_s=0.5, **properties):
        client: Any = self.client(broker, name)
        filters = [plain(each) for each in topics or ("cars",)]
        wish = list(properties.items())
        came = client.ask(mqtt5.SubscribePacket(1, filters, user_properties=wish))  # it may know at once
        self.run(wait_s)
        came += client.read()
        (client.suback,) = came
        return client

    def promised(self):
        return {
            (name, neighbour): promised
            for name in self.hubs
            for neighbour, promised in self.federation(name).reserved.promised_bytes_per_s.items()
            if promised
        }


def plain(topic):
    return mqtt5.TopicFilter(topic, max_qos=mqtt5.QoS.AT_MOST_ONCE)


def codes(client):
    return [code.value for code in client.suback.reason_codes]


def news(client):
    return [
        json.loads(each.payload)
        for each in client.read()
        if isinstance(each, mqtt5.PublishPacket) and each.topic.startswith("$betimes/reservation/")
    ]


@pytest.fixture
def six():
    return Six()


def test_what_fits_is_reserved_all_the_way_and_given_back(six):
    alice = six.ask("alice", bandwidth="20KB/s", latency="500ms")
    assert codes(alice) == [0]
    assert alice.suback.reason_str.startswith("cars: 20KB/s reserved, ")
    assert dict(alice.suback.user_properties)["bandwidth"] == "20KB/s"
    held = six.promised()
    assert len(held) == 3
    assert set(held.values()) == {20_000}
    alice.ask(mqtt5.UnsubscribePacket(2, ["cars"]))
    six.run(0.5)
    assert six.promised() == {}


def test_any_bandwidth_is_what_the_publisher_advertises(six):
    assert codes(six.ask("alice", bandwidth="any")) == [0]
    assert set(six.promised().values()) == {20_000}


def test_two_at_one_broker_and_one_on_the_way_share_what_is_promised(six):
    for name, broker in (("alice", "f"), ("bob", "f")):
        assert codes(six.ask(name, broker=broker, bandwidth="20KB/s")) == [0]
    middle = next(two for one, two in six.promised() if one == "a")
    assert codes(six.ask("carol", broker=middle, bandwidth="20KB/s")) == [0]
    assert set(six.promised().values()) == {20_000}
    assert len(six.promised()) == 3


def test_what_does_not_fit_is_refused_with_what_would(six):
    six.client("a", "rider", user_properties=[("advertise", "bikes = 20KB/s")])
    six.client("a", "driver", user_properties=[("advertise", "buses = 31KB/s")])
    for topic, bandwidth in (("cars", "30KB/s"), ("buses", "31KB/s")):
        assert codes(six.ask(f"first {topic}", topic, bandwidth=bandwidth)) == [0]
    refused = six.ask("alice", "bikes", bandwidth="40KB/s")
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert refused.suback.reason_str == "bikes: refused: no bandwidth; 24KB/s would fit"
    assert dict(refused.suback.user_properties) == {"definite": "true", "bandwidth": "24KB/s"}
    before = six.promised()
    assert codes(six.ask("bob", "bikes", bandwidth="24KB/s")) == [0]
    assert sum(six.promised().values()) == sum(before.values()) + 3 * 24_000
    assert refused.hub.sessions["alice"].subscriptions == {}


def test_who_finds_links_full_is_told_what_others_have_that_can_be_shared(six):
    for broker, bandwidth in (("c", "54KB/s"), ("e", "53.5KB/s")):  # both ways, but for half a kilobyte
        assert codes(six.ask(f"at {broker}", broker=broker, bandwidth=bandwidth)) == [0]
    refused = six.ask("alice", bandwidth="any")
    fits = "54KB/s would fit, shared with those who have it"
    assert refused.suback.reason_str == f"cars: refused: no bandwidth; {fits}"
    assert dict(refused.suback.user_properties) == {"definite": "true", "bandwidth": "54KB/s"}
    before = six.promised()
    assert codes(six.ask("bob", bandwidth="54KB/s")) == [0]
    assert six.promised() == before | {("c", "f"): 54_000}


def test_a_question_that_is_refused_says_nothing_to_who_holds_the_same_flow(six):
    alice = six.ask("alice", bandwidth="any")
    before = six.promised()
    refused = six.ask("bob", bandwidth="any", latency="1ms")
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert "too slow" in refused.suback.reason_str
    six.run(30.0)
    assert news(alice) == []
    assert six.promised() == before


def test_of_two_who_ask_at_once_for_one_flow_each_is_answered_by_its_own_bound(six):
    clients = [six.client("f", name) for name in ("alice", "bob", "carol")]
    for client, latency in zip(clients, ("1ms", "1s", "2ms"), strict=True):
        wish = [("bandwidth", "any"), ("latency", latency)]
        assert client.ask(mqtt5.SubscribePacket(1, [plain("cars")], user_properties=wish)) == []
    six.run(2.0)
    answers = [client.read()[0].reason_codes[0].value for client in clients]
    assert answers == [QUOTA_EXCEEDED, 0, QUOTA_EXCEEDED]
    assert len(six.promised()) == 3


def test_what_would_fit_was_tried_also_where_several_links_are_short_of_room(six):
    for hub in six.hubs.values():
        for name, end in six.ends(hub.name).items():
            rate = {("a", "b"): 20.0, ("b", "c"): 10.0, ("a", "d"): 0.5}.get((hub.name, name), RATE)
            end.terms = LinkTerms(to=name, rate_kb_per_s=rate)
    refused = six.ask("alice", bandwidth="40KB/s", wait_s=2.0)
    assert refused.suback.reason_str == "cars: refused: no bandwidth; 9KB/s would fit"
    assert six.promised() == {}


def test_what_is_too_far_away_is_refused_with_how_far(six):
    refused = six.ask("alice", latency="1ms")
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert "too slow; the fastest way takes" in refused.suback.reason_str
    assert dict(refused.suback.user_properties)["definite"] == "true"


def test_what_nobody_advertises_is_refused_for_now(six):
    refused = six.ask("alice", "ships", bandwidth="any")
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert refused.suback.reason_str.endswith("nobody publishes this; this is not definite, ask again later")


@pytest.mark.parametrize("pattern", ["cars/#", "+/a", "$share/group/cars"])
def test_a_guarantee_is_for_one_topic(six, pattern):
    refused = six.ask("alice", pattern, wait_s=0.0, bandwidth="any")
    client = six.client("f", "bob")
    packet = mqtt5.SubscribePacket(1, [plain(pattern), plain("cars")], user_properties=[("bandwidth", "any")])
    assert client.ask(packet) == []
    six.run(0.5)
    (suback,) = [each for each in client.read() if isinstance(each, mqtt5.SubAckPacket)]
    assert [code.value for code in suback.reason_codes] == [UNSUPPORTED, 0]
    assert "one topic, without wildcards" in (suback.reason_str or "")
    assert refused.hub.sessions["alice"].subscriptions == {}


def test_topics_of_the_brokers_own_are_not_reserved(six):
    refused = six.ask("alice", "$betimes/x", wait_s=0.0, bandwidth="any")
    assert codes(refused) == [UNSUPPORTED]
    said = "$betimes/x: topics that begin with $ are the brokers' own, and nothing is reserved for them"
    assert refused.suback.reason_str == said


def test_links_without_a_rate_promise_nothing(six):
    for name in six.hubs:
        for end in six.ends(name).values():
            end.terms = LinkTerms(to=end.neighbour)
    refused = six.ask("alice", bandwidth="any")
    assert refused.suback.reason_str.endswith("or what others have of it there cannot be moved")


def test_a_broker_without_a_network_has_nothing_to_reserve():
    suback = Client(new_hub()).subscribe("cars", properties={"bandwidth": "20KB/s"})
    assert (suback.reason_codes[0].value, suback.reason_str) == (0, NOTHING_TO_RESERVE)


def test_who_leaves_gives_back_and_who_comes_back_asks_again(six):
    alice = six.client("f", "alice", session_expiry_interval=100)
    wish = [("bandwidth", "20KB/s")]
    alice.ask(mqtt5.SubscribePacket(1, [plain("cars")], user_properties=wish))
    six.run(0.5)
    alice.connection.lost(six.now_s)
    six.run(0.5)
    assert six.promised() == {}
    again = six.client("f", "alice", clean_start=False, session_expiry_interval=100)
    six.run(0.5)
    assert len(six.promised()) == 3
    assert [each["state"] for each in news(again)] == ["accepted"]


def test_a_subscription_that_is_replaced_keeps_one_reservation(six):
    alice = six.ask("alice", bandwidth="20KB/s")
    alice.ask(mqtt5.SubscribePacket(2, [plain("cars")], user_properties=[("bandwidth", "30KB/s")]))
    six.run(ANSWER_S_MAX + 0.5)
    assert set(six.promised().values()) == {30_000}
    assert len(six.promised()) == 3


def test_a_killed_broker_is_gone_round_and_the_subscriber_is_told(six):
    alice = six.ask("alice", bandwidth="20KB/s")
    killed = next(two for one, two in six.promised() if one == "a")
    six.kill(killed)
    six.run(ANSWER_S_MAX + AGAIN_S_MIN + 2.0)
    assert len(six.promised()) == 3
    assert all(killed not in ends for ends in six.promised())
    states = [each["state"] for each in news(alice)]
    assert states[0] == "interrupted"
    assert states[-1] == "accepted"


def test_it_is_made_again_within_the_refresh_time_though_the_rendezvous_is_killed_too(six):
    by_name = [contact_of(name) for name in "abcdef"]
    topics = {closest(rendezvous_key(topic, 0), by_name).name: topic for topic in map(str, range(100))}
    told = [("advertise", f"{topic} = 5KB/s") for topic in topics.values()]
    six.client("a", "pubs", user_properties=told)
    six.run(0.5)
    askers = {name: six.ask(f"asks {name}", topics[name], bandwidth="any") for name in "bcde"}
    used = {name: {two for _, two in six.promised()} & {name} for name in "bcde"}
    killed = next(name for name in "bcde" if used[name])
    six.kill(killed)
    six.run(six.federation("f").settings.refresh_every_s)
    states = [each["state"] for each in news(askers[killed])]
    assert states[0] == "interrupted"
    assert states[-1] == "accepted"
    assert all(killed not in ends for ends in six.promised())


@pytest.mark.parametrize("late_s", [0.0, 0.3, 1.9])
@pytest.mark.parametrize("killed", ["b", "c", "d", "e"])
def test_it_is_made_again_at_once_when_the_last_has_noticed_who_was_killed(killed, late_s):
    by_name = [contact_of(name) for name in "abcdef"]
    topics = {closest(rendezvous_key(topic, 0), by_name).name: topic for topic in map(str, range(100))}
    for slow in [name for ends in LINKS if killed in ends for name in ends if name != killed]:
        six = Six()
        six.client(
            "a", "pubs", user_properties=[("advertise", f"{each} = 1KB/s") for each in topics.values()]
        )
        six.run(0.5)
        askers = [six.ask(f"asks {each}", each, bandwidth="any") for each in topics.values()]
        six.kill(killed, **{slow: late_s})
        six.run(late_s + 0.5)
        for asker in askers:
            told = news(asker)
            assert [each["state"] for each in told[-1:]] in ([], ["accepted"])
            assert all("latency_s" in each for each in told if each["state"] == "accepted")
        assert all(killed not in ends for ends in six.promised())


def test_what_cannot_be_made_again_is_told_with_what_would_fit_and_tried_until_it_can(six):
    alice = six.ask("alice", bandwidth="40KB/s")
    used = next(two for one, two in six.promised() if one == "a")
    bob = six.ask("bob", broker={"b": "e", "d": "c"}[used], bandwidth="30KB/s")  # on the other way
    assert codes(bob) == [0]
    six.kill(used)
    six.run(10.0)
    told = news(alice)[-1]
    assert (told["state"], told["definite"], told["fits_bytes_per_s"]) == ("refused", True, 30_000)
    assert told["why"].startswith("no bandwidth; 30KB/s would fit, shared with those who have it")
    assert told["why"].endswith("; the broker goes on asking")
    assert bob.hub.sessions["bob"].subscriptions
    bob.connection.lost(six.now_s)
    six.run(10.0)
    assert [each["state"] for each in news(alice)] == ["accepted"]
    assert set(six.promised().values()) == {40_000}


def test_a_publisher_that_goes_takes_its_flow_with_it_and_brings_it_back(six):
    other = six.client("b", "other", user_properties=[("advertise", "ships = 5KB/s")])
    six.run(0.5)
    alice = six.ask("alice", "ships", bandwidth="any")
    assert codes(alice) == [0]
    held = six.promised()
    other.connection.lost(six.now_s)
    six.run(0.5)
    assert codes(six.ask("bob", "ships", bandwidth="any")) == [QUOTA_EXCEEDED]
    refresh_s = six.federation("f").settings.refresh_every_s
    six.run(refresh_s)
    assert six.promised() == {}
    told = news(alice)
    assert [each["state"] for each in told] == ["interrupted", "refused"]
    assert told[-1]["why"].startswith("nobody publishes this")
    assert not told[-1]["definite"]
    six.run(10 * refresh_s)
    assert news(alice) == []
    six.client("b", "other", user_properties=[("advertise", "ships = 5KB/s")])
    six.run(refresh_s + 0.5)
    assert [each["state"] for each in news(alice)] == ["accepted"]
    assert six.promised() == held


def test_a_publisher_that_is_back_before_the_next_refresh_has_kept_its_flow(six):
    alice = six.ask("alice", bandwidth="any")
    reserved = six.federation("a").reserved
    six.run(reserved.node._refreshed_s + six.federation("a").settings.refresh_every_s - six.now_s + 0.5)
    held = six.promised()
    six.publisher.connection.lost(six.now_s)
    six.run(3.0)
    six.client("a", "pub", user_properties=[("advertise", "cars = 20KB/s")])
    six.run(30.0)
    assert (six.promised(), news(alice)) == (held, [])


def test_of_two_publishers_one_may_go_and_what_the_other_gives_stays_reserved(six):
    other = six.client("e", "other", user_properties=[("advertise", "cars = 5KB/s")])
    six.run(0.5)
    alice = six.ask("alice", bandwidth="any")
    assert codes(alice) == [0]
    assert set(six.promised().values()) == {20_000, 5_000} or 25_000 in six.promised().values()
    other.connection.lost(six.now_s)
    six.run(six.federation("f").settings.refresh_every_s + 1.0)
    assert [each["state"] for each in news(alice)] == ["interrupted", "accepted"]
    assert set(six.promised().values()) == {20_000}


def test_a_publishers_broker_that_is_killed_and_comes_back_without_it_is_not_reserved_from(six):
    alice = six.ask("alice", bandwidth="any")
    six.kill("a")
    six.run(0.5)
    six.start("a")
    for other in "bd":
        six.join("a", other, rate_kb_per_s=RATE)
    six.run(3.0)
    told = news(alice)
    assert [each["state"] for each in told] == ["interrupted", "refused"]
    assert told[-1]["why"].startswith("nobody publishes this")
    refused = six.ask("bob", bandwidth="any")
    assert refused.suback.reason_str.endswith("nobody publishes this; this is not definite, ask again later")
    six.run(30.0)
    assert six.promised() == {}
    six.client("a", "pub", user_properties=[("advertise", "cars = 20KB/s")])
    six.run(10.5)
    assert [each["state"] for each in news(alice)] == ["accepted"]


def test_who_hangs_up_before_the_answer_keeps_nothing(six):
    alice = six.client("f", "alice")
    wish = [("bandwidth", "20KB/s")]
    assert alice.ask(mqtt5.SubscribePacket(1, [plain("cars")], user_properties=wish)) == []
    alice.connection.lost(six.now_s)
    six.run(1.0)
    assert six.promised() == {}


def flooded(six, subscriber):
    """Send cars at 40 KB/s and noise of three times a link for 5 s; return ages of cars, and the noise."""
    other = six.client("f", "other")
    other.subscribe("noise")
    six.run(0.5)
    subscriber.read()
    flood = six.client("a", "flood")
    for _ in range(50):
        flood.now_s = six.publisher.now_s = six.now_s
        for _ in range(18):
            flood.publish("noise", b"x" * 900)
        for _ in range(4):
            six.publisher.publish("cars", b"x" * 880)
        six.run(0.1)
    six.run(0.5)
    cars = [each for each in subscriber.read() if isinstance(each, mqtt5.PublishPacket)]
    return [float(dict(each.user_properties)["$age"]) for each in cars], len(other.got())


@pytest.mark.parametrize("strategy", ["fifo", "eb", "late-binding"])
def test_what_is_reserved_goes_before_all_else_and_the_rest_takes_what_is_left(strategy):
    six = Six(strategy=strategy)
    ages_ms, noise = flooded(six, six.ask("alice", bandwidth="50KB/s"))
    assert len(ages_ms) == 200
    assert max(ages_ms) < 500.0
    assert noise > 50


def test_without_a_reservation_the_same_events_are_late(six):
    alice = six.client("f", "alice")
    alice.subscribe("cars", properties={"price": "1"})
    ages_ms, _ = flooded(six, alice)
    assert sum(age_ms < 500.0 for age_ms in ages_ms) < 100


def test_what_is_beyond_the_reservation_waits_like_everything_else(six):
    ages_ms, noise = flooded(six, six.ask("alice", bandwidth="10KB/s"))
    assert 50 <= len(ages_ms) < 150  # of 200: what is promised comes, and some of the rest
    assert noise > 150


def test_who_may_not_subscribe_is_told_so_and_nothing_is_asked_for(six):
    alice = six.client("f", "alice")
    alice.hub.sessions["alice"].rights = AccessList.read("topic read bikes", "access").rights(None, "alice")
    packet = mqtt5.SubscribePacket(1, [plain("cars")], user_properties=[("bandwidth", "any")])
    (suback,) = alice.ask(packet)
    assert (suback.reason_codes[0].value, suback.reason_str) == (0x87, "cars: not allowed")
    six.run(0.5)
    assert six.promised() == {}


def test_reasons_are_told_in_words():
    assert why(Refused("s", None, RefusalReason.NO_ANSWER, False, 0, 1.0)) == "no answer"
    assert why(Refused("s", None, RefusalReason.TOO_MANY, True, 0, 1.0)) == "too many"


def test_a_topic_that_is_too_long_to_be_spoken_of_is_refused_and_no_link_breaks(six):
    long = "x" * 500
    six.publisher = six.client("a", "long", user_properties=[("advertise", f"{long} = 1KB/s")])
    six.run(0.5)
    assert codes(six.ask("alice", long, bandwidth="any")) == [0]
    assert codes(six.ask("bob", long + "x", bandwidth="any")) == [UNSUPPORTED]
    assert all(len(six.ends(name)) == 2 for name in six.hubs)
    refused = six.ask("carol", bandwidth="999999999999GB/s")
    assert codes(refused) == [UNSUPPORTED]
    assert "more than any network has" in refused.suback.reason_str
    assert codes(six.ask("dave", bandwidth="900GB/s")) == [QUOTA_EXCEEDED]
    assert all(len(six.ends(name)) == 2 for name in six.hubs)


def test_the_latency_that_is_told_can_be_had():
    told = why(Refused("s", "b1", RefusalReason.TOO_SLOW, True, 0, 0.16164))
    assert told.endswith("the fastest way takes 161.7ms")
    assert why(Refused("s", "b1", RefusalReason.TOO_SLOW, True, 0, 0.05)).endswith("takes 50ms")
