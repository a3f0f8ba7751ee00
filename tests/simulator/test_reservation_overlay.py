"""Do promises hold in a whole network, whatever is asked, given back and crashed?"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reservations.overlay.small_overlays import REPAIRED_S, SETTINGS, small_overlay
from tests.reservations.test_flow_tree import mirrored, promised

from betimes.reservations.outcomes import Accepted, Interrupted, RefusalReason, Refused
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import Manner

CAPACITY = 80
manners = st.sampled_from(list(Manner))
asks = st.tuples(
    st.integers(0, 15),  # where
    st.integers(0, 2),  # which type
    st.sampled_from([None, 5, 30, 70]),
    manners,
    st.booleans(),
)


def started(seed, link_bytes_per_s=CAPACITY):
    overlay = small_overlay(seed, count=16, link_bytes_per_s=link_bytes_per_s)
    for number in range(3):
        overlay.advertise(f"n{number}", f"type {number}", 20, replicas=2)
    overlay.settle()
    return overlay


def ask(overlay, number, what):
    where, event_type, bytes_per_s, manner, is_shared = what
    name = f"n{where}"
    if name in overlay.nodes:
        wish = ReservationRequest(
            subscription=f"s{number}",
            event_type=f"type {event_type}",
            bytes_per_s=bytes_per_s,
            manner=manner,
            is_shared=is_shared,
            replicas=2,
        )
        overlay.subscribe(name, wish)
    return name


def assert_no_link_has_promised_too_much(overlay):
    assert all(sum_ <= CAPACITY for sum_ in promised(overlay).values())


@pytest.mark.long
@given(seed=st.integers(0, 2**20), wanted=st.lists(asks, min_size=1, max_size=25))
@settings(max_examples=25, deadline=None)
def test_no_link_is_promised_more_than_it_has_and_all_comes_back(seed, wanted):
    overlay = started(seed)
    homes = []
    for number, what in enumerate(wanted):
        homes.append(ask(overlay, number, what))
        if number % 3:  # some ask while others are still asking
            overlay.settle()
        assert_no_link_has_promised_too_much(overlay)
    overlay.settle()
    assert_no_link_has_promised_too_much(overlay)
    assert promised(overlay) == mirrored(overlay)
    for number, name in enumerate(homes):
        overlay.unsubscribe(name, f"s{number}")
    overlay.settle()
    assert promised(overlay) == mirrored(overlay) == {}
    assert all(not len(node.branches) and not len(node.requests) for node in overlay.nodes.values())


@pytest.mark.long
@given(
    seed=st.integers(0, 2**20),
    wanted=st.lists(asks, min_size=1, max_size=12),
    crashed=st.sets(st.integers(3, 15), min_size=1, max_size=4),
)
@settings(max_examples=20, deadline=None)
def test_no_reservation_survives_its_refresh_time(seed, wanted, crashed):
    overlay = started(seed)
    homes = {f"s{number}": ask(overlay, number, what) for number, what in enumerate(wanted)}
    overlay.settle()
    gone = {f"n{number}" for number in crashed}
    for name in sorted(gone):
        overlay.crash(name)
    beat_s = SETTINGS.dht.beat_every_s
    for _ in range(12):
        overlay.run_until(overlay.agenda.now_s + beat_s)
        assert_no_link_has_promised_too_much(overlay)
    overlay.run_until(overlay.agenda.now_s + REPAIRED_S)
    assert all(neighbour not in gone for _, neighbour in promised(overlay))
    # Whoever still holds something leads down to a subscriber that lives.
    for subscription, home in homes.items():
        if home not in gone:
            overlay.unsubscribe(home, subscription)
    overlay.run_until(overlay.agenda.now_s + SETTINGS.lapse_after_s + 2 * beat_s)
    assert promised(overlay) == mirrored(overlay) == {}


@pytest.mark.long
def test_what_a_crash_broke_is_reserved_elsewhere_within_the_refresh_time():
    overlay = small_overlay(21, count=20, link_bytes_per_s=CAPACITY)
    overlay.advertise("n3", "cars", 20, replicas=2)
    overlay.settle()
    for number in range(5, 15):
        overlay.subscribe(
            f"n{number}",
            ReservationRequest(
                subscription=f"s{number}", event_type="cars", replicas=2, manner=Manner.COORDINATES
            ),
        )
        overlay.settle()
    (flow,) = {news.flow for news in overlay.news if isinstance(news, Accepted)}
    inner = [name for name, node in overlay.nodes.items() if name != "n3" and any(node.branches.below(flow))]
    overlay.crash(inner[0])
    overlay.news.clear()
    overlay.run_until(overlay.agenda.now_s + SETTINGS.lapse_after_s + 3 * SETTINGS.dht.beat_every_s)
    for number in range(5, 15):
        node = overlay.nodes.get(f"n{number}")
        if node is not None:
            assert "" in node.branches.below(flow), number
    assert_no_link_has_promised_too_much(overlay)


@pytest.mark.long
def test_the_same_seed_gives_the_same_trace():
    first, second = started(7), started(7)
    assert first.sent == second.sent
    assert first.links() == second.links()
    assert first.agenda.now_s == second.agenda.now_s


def test_a_goodbye_lets_flows_find_other_ways_at_once():
    overlay = small_overlay(22, count=20)
    overlay.advertise("n3", "cars", 20)
    overlay.settle()
    overlay.subscribe("n8", ReservationRequest(subscription="s", event_type="cars"))
    overlay.settle()
    (news,) = overlay.news
    upstream = overlay.nodes["n8"].branches.upstream(news.flow)
    assert upstream != "n3", "there is a node between"
    overlay.leave(upstream)
    overlay.settle()
    assert isinstance(overlay.news[-1], Accepted)
    assert upstream not in overlay.nodes


def test_nothing_is_left_of_a_publisher_that_said_goodbye():
    overlay = small_overlay(23, count=20)
    overlay.advertise("n3", "cars", 20)
    overlay.settle()
    for number in range(5, 12):
        overlay.subscribe(f"n{number}", ReservationRequest(subscription=f"s{number}", event_type="cars"))
        overlay.settle()
    assert promised(overlay)
    overlay.news.clear()
    overlay.leave("n3")
    overlay.settle()
    assert promised(overlay) == mirrored(overlay) == {}
    assert {type(each) for each in overlay.news} == {Interrupted, Refused}
    assert {each.reason for each in overlay.news if isinstance(each, Refused)} == {
        RefusalReason.NOBODY_PUBLISHES
    }
