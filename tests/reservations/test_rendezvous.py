"""Do those who publish and those who ask meet, and is what walks collect true?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.reservations.overlay.small_overlays import SETTINGS, small_overlay

from betimes.reservations.overlay.identifiers import rendezvous_key
from betimes.reservations.rendezvous import PUBLISHERS_MAX
from betimes.reservations.signals import Advertise, Offers


@pytest.fixture
def overlay():
    return small_overlay(11, count=20)


def asked(overlay, name, event_type, replica=0):
    """Return the offers that a node gets when it asks, by itself, and no reservation."""
    answers = []
    node = overlay.nodes[name]

    def take_offers(offers, now_s):
        answers.append(offers)
        return []

    node.requests.take_offers = take_offers
    overlay.perform(name, node._settle(node.rendezvous.ask("s", 1, event_type, replica), 0.0))
    overlay.settle()
    (offers,) = answers
    assert isinstance(offers, Offers)
    return offers.offers


def test_a_way_leads_from_who_asks_over_the_rendezvous_to_the_publisher(overlay):
    overlay.advertise("n3", "cars", 10)
    overlay.settle()
    (offer,) = asked(overlay, "n8", "cars")
    names = [hop.name for hop in offer.way]
    assert (names[0], names[-1]) == ("n8", "n3")
    meeting = overlay.closest(rendezvous_key("cars", 0)).name
    there, back = (
        overlay.route("n8", rendezvous_key("cars", 0)),
        overlay.route("n3", rendezvous_key("cars", 0)),
    )
    assert there[-1] == back[-1] == meeting
    assert set(names) <= {*there, *back}
    assert offer.latency_s == pytest.approx(sum(overlay.latency_s(a, b) for a, b in pairwise(names)))


def test_what_walks_collect_is_the_room_of_each_link_in_the_direction_of_events(overlay):
    overlay.advertise("n3", "cars", 10)
    overlay.settle()
    (offer,) = asked(overlay, "n8", "cars")
    way = [hop.name for hop in offer.way]
    below, above = way[0], way[1]
    assert overlay.nodes[above].outward.promise("other", below, 30)
    (offer,) = asked(overlay, "n8", "cars")
    assert offer.way[1].room_bytes_per_s == 50
    assert offer.room_bytes_per_s == 50


def test_every_replica_knows_the_publisher(overlay):
    overlay.advertise("n3", "cars", 10, replicas=3)
    overlay.settle()
    for replica in range(3):
        meeting = overlay.closest(rendezvous_key("cars", replica)).name
        assert len(overlay.nodes[meeting].rendezvous) >= 1
        assert [offer.publisher for offer in asked(overlay, "n8", "cars", replica)] == ["n3"]


def test_nobody_publishes_what_was_withdrawn_or_has_lapsed(overlay):
    overlay.advertise("n3", "cars", 10)
    overlay.advertise("n4", "cars", 10)
    overlay.settle()
    assert {offer.publisher for offer in asked(overlay, "n8", "cars")} == {"n3", "n4"}
    overlay.perform("n3", overlay.nodes["n3"].withdraw("cars", overlay.agenda.now_s))
    overlay.settle()
    assert {offer.publisher for offer in asked(overlay, "n8", "cars")} == {"n4"}
    for node in overlay.nodes.values():
        node.rendezvous.lapse(overlay.agenda.now_s + SETTINGS.lapse_after_s)
    assert asked(overlay, "n8", "cars") == ()


def test_a_rendezvous_remembers_only_so_many_publishers(overlay):
    meeting = overlay.nodes[overlay.closest(rendezvous_key("cars", 0)).name]
    for number in range(PUBLISHERS_MAX + 5):
        walk = Advertise("cars", 0, f"p{number}", 10, meeting.dht.coordinate, (), 80)
        meeting.rendezvous.take_advertisement("n1", walk, 0.0)
    assert len(meeting.rendezvous) == PUBLISHERS_MAX
