"""Is a reservation moved to a faster way for a client who needs it sooner, and is nobody the worse for it?

From a to f lead a fast way, over b, and a slow one, over d and e; links carry 60 KB/s, of which 54 may be
promised.
"""

from __future__ import annotations

from typing import Any, cast

import mqtt5
import pytest
from tests.broker.guarantees.test_guarantees import QUOTA_EXCEEDED, RATE, codes, news, plain
from tests.broker.networks import Net

from betimes.broker.links.reservations import ANSWER_S_MAX
from betimes.model.network_settings import LinkTerms

pytestmark = pytest.mark.long

LINKS = (("a", "b"), ("b", "f"), ("a", "d"), ("d", "e"), ("e", "f"))
FAST, SLOW = {("a", "b"), ("b", "f")}, {("a", "d"), ("d", "e"), ("e", "f")}
TIGHT = "90ms"  # two links take 67 ms and more, three 100


class Two(Net):
    """Five brokers, a publisher of cars at a, and a subscriber at f who came while the fast way was full."""

    def __init__(self) -> None:
        terms = tuple([LinkTerms(to=name, rate_kb_per_s=RATE) for name in "abdef"])
        super().__init__(*"abdef", links=terms)
        for one, other in LINKS:
            self.join(one, other, s_per_kb=1.0 / RATE, rate_kb_per_s=RATE)
        self.run(1.0)
        told = [("advertise", "cars = 20KB/s"), ("advertise", "bikes = 50KB/s")]
        self.publisher = self.client("a", "pub", user_properties=told)
        self.run(0.5)
        self.waiting_lines = self.ask("crowd", "bikes", bandwidth="50KB/s")
        assert set(self.promised()) == FAST
        self.loose = self.ask("loose", bandwidth="any")
        assert set(self.promised()) == FAST | SLOW

    def ask(self, name, topic="cars", **properties):
        client: Any = self.client("f", name)
        came = client.ask(mqtt5.SubscribePacket(1, [plain(topic)], user_properties=list(properties.items())))
        self.run(0.5)
        came += client.read()
        (client.suback,) = came
        return client

    def leave(self, client):
        client.connection.lost(self.now_s)
        self.run(0.5)

    def promised(self):
        return {
            (name, neighbour): promised
            for name in self.hubs
            for neighbour, promised in self.federation(name).reserved.promised_bytes_per_s.items()
            if promised
        }

    def pinned(self, broker):
        return cast(Any, self.federation(broker)).broker._pins.pinned


@pytest.fixture
def two():
    return Two()


def test_who_needs_it_sooner_has_it_by_the_fast_way_and_so_has_everybody(two):
    two.leave(two.waiting_lines)
    tight = two.ask("tight", bandwidth="any", latency=TIGHT)
    assert codes(tight) == [0]
    (told,) = news(two.loose)
    assert (told["state"], told["bytes_per_s"]) == ("accepted", 20_000)
    assert 0.05 < told["latency_s"] < 0.09
    assert two.pinned("a") == {("cars", "a"): {"f": "b"}}
    two.run(ANSWER_S_MAX + 0.5)
    assert set(two.promised()) == FAST
    two.run(60.0)
    assert set(two.promised()) == FAST
    assert (news(two.loose), news(tight)) == ([], [])
    two.leave(two.loose)
    assert set(two.promised()) == FAST
    two.leave(tight)
    assert two.promised() == {}


@pytest.mark.parametrize("bandwidth", ["any", "4KB/s"])  # there is room for 4, but all would have to come
def test_where_the_fast_way_is_full_it_is_refused_and_nothing_moves(two, bandwidth):
    before = two.promised()
    refused = two.ask("tight", bandwidth=bandwidth, latency=TIGHT)
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert refused.suback.reason_str.startswith("cars: refused: no bandwidth; nothing fits")
    assert dict(refused.suback.user_properties)["definite"] == "true"
    two.run(30.0)
    assert two.promised() == before
    assert news(two.loose) == []


def test_who_asks_for_less_has_the_events_within_its_bound_though_others_have_more(two):
    two.leave(two.waiting_lines)
    less = two.ask("less", bandwidth="4KB/s", latency=TIGHT)
    assert codes(less) == [0]
    assert less.suback.reason_str.startswith("cars: 4KB/s reserved, ")
    assert two.pinned("a") == {("cars", "a"): {"f": "b"}}
    two.run(ANSWER_S_MAX + 0.5)
    assert two.promised() == dict.fromkeys(FAST, 20_000)
    two.publisher.now_s = two.now_s
    two.publisher.publish("cars", b"x" * 900)
    two.run(1.0)
    (came,) = [each for each in less.read() if isinstance(each, mqtt5.PublishPacket)]
    assert float(dict(came.user_properties)["$age"]) < 90.0


def test_who_asks_for_more_than_fits_within_the_bound_of_those_who_are_there_is_told_what_would(two):
    two.leave(two.waiting_lines)
    tight = two.ask("tight", bandwidth="any", latency=TIGHT)
    two.run(ANSWER_S_MAX + 0.5)
    before = two.promised()
    refused = two.ask("more", bandwidth="50KB/s")  # the slow way has so much, but tight has no use for it
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert refused.suback.reason_str == "cars: refused: no bandwidth; 34KB/s would fit"
    assert two.promised() == before  # what was tried is given back, and nothing was moved for it
    assert (news(tight), two.pinned("a")) == ([], {("cars", "a"): {"f": "b"}})
    assert codes(two.ask("less", bandwidth="34KB/s")) == [0]
    two.run(ANSWER_S_MAX + 0.5)
    assert two.promised() == dict.fromkeys(FAST, 34_000)
    assert two.pinned("a") == {("cars", "a"): {"f": "b"}}


def test_what_no_way_can_do_is_refused_with_what_the_fastest_takes_and_that_can_be_had(two):
    two.leave(two.waiting_lines)
    refused = two.ask("tight", bandwidth="any", latency="10ms")
    told = dict(refused.suback.user_properties)
    assert (codes(refused), told["definite"]) == ([QUOTA_EXCEEDED], "true")
    assert codes(two.ask("again", bandwidth="any", latency=told["latency"])) == [0]
    two.run(ANSWER_S_MAX + 0.5)
    assert set(two.promised()) == FAST


def test_what_comes_while_it_is_moved_comes_in_time_beside_a_flood(two):
    two.leave(two.waiting_lines)
    other = two.client("f", "other")
    other.subscribe("noise")
    flood = two.client("a", "flood")
    for round_ in range(80):
        flood.now_s = two.publisher.now_s = two.now_s
        for _ in range(18):
            flood.publish("noise", b"x" * 900)
        two.publisher.publish("cars", b"x" * 900)
        if round_ == 20:
            wanted = cast(Any, two.brokers["f"].guarantees)._wanted.values()
            (held,) = [each for each in wanted if each.session.client_id == "loose"]
            wish = [("bandwidth", "any"), ("latency", f"{held.latency_s * 900:.0f}ms")]
            two.client("f", "tight").ask(mqtt5.SubscribePacket(1, [plain("cars")], user_properties=wish))
        two.run(0.1)
    two.run(1.0)
    came = [each for each in two.loose.read() if isinstance(each, mqtt5.PublishPacket)]
    ages_ms = [float(dict(each.user_properties)["$age"]) for each in came if each.topic == "cars"]
    assert set(two.promised()) == FAST
    assert len(ages_ms) == 80
    assert max(ages_ms) < 500.0


def test_every_event_that_is_published_while_it_is_moved_comes_once(two):
    two.leave(two.waiting_lines)
    two.loose.read()
    for number in range(400):
        two.publisher.now_s = two.now_s
        two.publisher.publish("cars", str(number).encode())
        two.run(0.002)
        if number == 100:
            wish = [("bandwidth", "any"), ("latency", TIGHT)]
            two.client("f", "tight").ask(mqtt5.SubscribePacket(1, [plain("cars")], user_properties=wish))
    two.run(ANSWER_S_MAX + 1.0)
    came = [each for each in two.loose.read() if isinstance(each, mqtt5.PublishPacket)]
    found = [int(each.payload) for each in came if each.topic == "cars"]
    assert set(two.promised()) == FAST
    assert sorted(found) == list(range(400))
