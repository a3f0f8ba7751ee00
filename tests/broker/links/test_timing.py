"""Is the time on a link measured without a common clock, and little kept on its way?"""

from __future__ import annotations

import math

import pytest

from betimes.broker.links.timing import IN_FLIGHT_MAX, Least, LinkTiming, SendWindow


def test_the_least_value_is_forgotten_after_two_windows():
    least = Least(window_s=10.0)
    assert least.value == math.inf
    least.add(3.0, 0.0)
    least.add(5.0, 11.0)
    assert least.value == 3.0
    least.add(6.0, 22.0)
    assert least.value == 5.0


def test_what_a_message_took_does_not_depend_on_the_other_clock():
    transit = LinkTiming()
    transit.heard_back(0.2, 0.0)
    offset = 12_345.0
    assert transit.arrived(offset + 1.0, 1.1)[0] == pytest.approx(0.1)  # the shortest: half of there and back
    assert transit.arrived(offset + 2.0, 2.4)[0] == pytest.approx(0.4)


def test_a_message_does_not_occupy_the_link_while_another_does():
    transit = LinkTiming()
    transit.arrived(0.0, 0.0)
    assert transit.arrived(10.0, 10.5)[1] == pytest.approx(0.5)
    took_s, occupied_s = transit.arrived(10.0, 11.0)
    assert [took_s, occupied_s] == pytest.approx([1.0, 0.5])


def test_one_message_at_a_time_keeps_a_slow_link_busy():
    window = SendWindow()
    for second in range(100):
        window.returned(round_trip_s=0.0403, transfer_s=0.040, now_s=float(second))
    assert window.allowed == 1


def test_a_long_way_takes_as_many_as_are_under_way_meanwhile():
    window = SendWindow()
    window.returned(round_trip_s=0.110, transfer_s=0.010, now_s=0.0)
    assert window.allowed == 11


def test_a_fast_link_takes_many_but_not_endlessly_many():
    window = SendWindow()
    assert window.allowed == 1
    window.returned(round_trip_s=0.0002, transfer_s=0.0, now_s=0.0)
    assert window.allowed == IN_FLIGHT_MAX


def test_who_waits_for_a_core_does_not_make_the_link_a_slow_one():
    window, waits_s = SendWindow(), 0.006
    for turn in range(100):
        for nth in range(
            window.allowed
        ):  # all that are under way are taken in together, once there is a core
            window.returned(round_trip_s=waits_s, transfer_s=0.0 if nth else waits_s, now_s=float(turn))
    assert window.allowed > IN_FLIGHT_MAX // 4


def test_a_link_that_becomes_slow_is_given_less():
    window = SendWindow()
    window.returned(round_trip_s=0.0002, transfer_s=0.0, now_s=0.0)
    for second in range(100):
        window.returned(round_trip_s=0.5, transfer_s=0.040, now_s=float(second))
    assert window.allowed == 1
