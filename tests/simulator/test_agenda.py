"""Does everything happen in order of time, and of asking where times are equal?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.simulator.agenda import Agenda


@given(st.lists(st.integers(0, 5)))
def test_things_are_done_by_time_and_then_by_order_of_asking(times):
    agenda, done = Agenda(), list[tuple[int, int]]()
    for number, time_s in enumerate(times):
        agenda.at(float(time_s), done.append, (time_s, number))
    assert len(agenda) == len(times)
    assert agenda.run() == len(times)
    assert done == sorted(done)
    assert len(agenda) == 0


def test_the_clock_shows_the_time_of_what_is_done():
    agenda, seen = Agenda(), []
    for time_s in (3.0, 1.0, 2.0):
        agenda.at(time_s, lambda: seen.append(agenda.now_s))
    agenda.run()
    assert seen == [1.0, 2.0, 3.0]


def test_what_is_asked_for_now_comes_after_what_was_asked_for_before():
    agenda, done = Agenda(), []

    def first() -> None:
        done.append("first")
        agenda.at(1.0, done.append, "third")

    agenda.at(1.0, first)
    agenda.at(1.0, done.append, "second")
    agenda.run()
    assert done == ["first", "second", "third"]


def test_the_past_cannot_be_planned():
    agenda = Agenda()
    agenda.at(2.0, lambda: None)
    agenda.run()
    with pytest.raises(AssertionError, match="past"):
        agenda.at(1.0, lambda: None)


def test_a_run_stops_at_a_time_and_goes_on_later():
    agenda, done = Agenda(), list[float]()
    for time_s in (1.0, 2.0, 3.0):
        agenda.at(time_s, done.append, time_s)
    assert agenda.run(until_s=2.0) == 2
    assert done == [1.0, 2.0]
    assert agenda.run() == 1
    assert done == [1.0, 2.0, 3.0]
