"""Does a link draw each message's time from its distribution, whatever the order they come in?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model.events import Event, EventId
from betimes.model.topology import Link
from betimes.simulator.network import S_PER_KB_MIN, DrawnLink

LINK = Link(source="a", target="b", s_per_kb_mean=0.075, s_per_kb_sd=0.02)
ids = st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 3000)), max_size=12)


def event(origin: str = "p", number: int = 1, size_kb: float = 50.0) -> Event:
    return Event(id=EventId(origin, number), size_kb=size_kb)


@given(ids, st.randoms())
def test_draws_do_not_depend_on_the_order_messages_come_in(numbers, shuffler):
    one, other = DrawnLink(LINK, 1), DrawnLink(LINK, 1)
    expected = {each: one.transfer_s(event(*each)) for each in numbers}
    shuffled = sorted(expected)
    shuffler.shuffle(shuffled)
    assert {each: other.transfer_s(event(*each)) for each in shuffled} == expected


def test_the_same_message_takes_the_same_time_again():
    link = DrawnLink(LINK, 1)
    assert link.transfer_s(event(number=5)) == link.transfer_s(event(number=5))


def test_links_origins_numbers_and_seeds_have_draws_of_their_own():
    back = Link(source="b", target="a", s_per_kb_mean=0.075, s_per_kb_sd=0.02)
    times = {
        DrawnLink(LINK, 1).transfer_s(event()),
        DrawnLink(back, 1).transfer_s(event()),
        DrawnLink(LINK, 2).transfer_s(event()),
        DrawnLink(LINK, 1).transfer_s(event("q")),
        DrawnLink(LINK, 1).transfer_s(event(number=2)),
    }
    assert len(times) == 5


def test_times_have_the_links_mean_and_deviation():
    link = DrawnLink(LINK, 1)
    times_s = np.array([link.transfer_s(event(number=number)) for number in range(1, 8001)])
    assert times_s.mean() == pytest.approx(50.0 * 0.075, rel=0.01)
    assert times_s.std() == pytest.approx(50.0 * 0.02, rel=0.03)


def test_a_drawn_speed_is_cut_off_at_a_millisecond_per_kilobyte():
    wild = DrawnLink(Link(source="a", target="b", s_per_kb_mean=0.075, s_per_kb_sd=1.0), 1)
    times_s = [wild.transfer_s(event(number=number)) for number in range(1, 200)]
    assert min(times_s) == pytest.approx(50.0 * S_PER_KB_MIN)


def test_a_fast_link_is_not_slowed_by_the_cut():
    fast = DrawnLink(Link(source="a", target="b", s_per_kb_mean=0.00001), 1)
    assert fast.transfer_s(event()) == pytest.approx(50.0 * 0.00001)


def test_time_is_the_fixed_delay_and_the_size_times_the_speed():
    steady = DrawnLink(Link(source="a", target="b", s_per_kb_mean=0.1, delay_s=0.5), 1)
    assert steady.transfer_s(event(size_kb=10.0)) == pytest.approx(1.5)
    assert steady.transfer_s(event(size_kb=20.0)) == pytest.approx(2.5)
