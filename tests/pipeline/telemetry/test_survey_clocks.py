"""Are clocks that disagree understood, by the ages of what travelled?"""

from __future__ import annotations

import pytest

from betimes.pipeline.telemetry.survey import clock_differences, clocks_ahead_s


@pytest.mark.spark
def test_the_difference_is_the_median_of_what_ages_say(spark):
    events = spark.createDataFrame(
        [("a", number, "a", 10.0 + number) for number in range(9)],
        "origin string, number long, broker string, time_s double",
    )
    # An hour ahead, seen at an age of two seconds; one of them by a clock that was just set.
    seen = [("a", number, "b", 3612.0 + number + (500.0 if number == 4 else 0.0), 2.0) for number in range(9)]
    sightings = spark.createDataFrame(
        [*seen, ("a", 1, "a", 11.0, 0.0)],
        "origin string, number long, broker string, time_s double, age_s double",
    )
    assert clock_differences(events, sightings, 9) == {("a", "b"): 3600.0}


def test_brokers_far_apart_are_compared_by_way_of_others():
    ahead_s = clocks_ahead_s({("a", "b"): 5.0, ("c", "b"): 1.0, ("x", "y"): 7.0})
    assert ahead_s == {"a": 0.0, "b": 5.0, "c": 4.0, "x": 0.0, "y": 7.0}


def test_no_events_say_nothing_of_clocks():
    assert clocks_ahead_s({}) == {}
