"""Is the measured share that of what arrived in time, and its interval as wide as it must be?"""

from __future__ import annotations

import math

import pytest

from betimes.pipeline.tables.shapes import DELIVERIES, MATCHES
from betimes.pipeline.telemetry.job import measured_reliability

pytestmark = pytest.mark.spark


def match(number, *, weight=1.0, born_s=10.0, settled=True, subscriber="s", price=2.0):
    return ("a", number, born_s, subscriber, 5.0, price, weight, settled, "b")


def delivery(number, *, age_s=1.0, born_s=10.0, subscriber="s"):
    return (born_s + age_s, 1.0, "a", number, "p", age_s, subscriber, 5.0, 2.0, age_s <= 5.0, False, "b")


def measured(spark, matches, deliveries):
    found = measured_reliability(
        spark.createDataFrame(matches, MATCHES.ddl), spark.createDataFrame(deliveries, DELIVERIES.ddl)
    )
    return found.orderBy("subscriber").collect()


def test_late_and_lost_are_not_in_time(spark):
    (row,) = measured(spark, [match(n) for n in range(4)], [delivery(0), delivery(0), delivery(1, age_s=9.0)])
    assert (row.count_rows, row.wanted, row.on_time, row.on_time_share) == (4, 4.0, 1.0, 0.25)
    assert (row.earning, row.offered) == (2.0, 8.0)


def test_the_interval_is_wilsons(spark):
    (row,) = measured(spark, [match(n) for n in range(10)], [delivery(n) for n in range(9)])
    # Wilson 1927, for 9 of 10.
    assert row.on_time_share_low == pytest.approx(0.5958, abs=1e-4)
    assert row.on_time_share_high == pytest.approx(0.9821, abs=1e-4)


def test_what_is_not_settled_or_not_wanted_does_not_count(spark):
    matches = [match(1), match(2, settled=False)]
    (row,) = measured(spark, matches, [delivery(1), delivery(7), delivery(1, subscriber="other")])
    assert (row.wanted, row.on_time_share) == (1.0, 1.0)


def test_two_events_of_one_number_are_told_apart_by_when_they_were_born(spark):
    matches = [match(1), match(1, born_s=5000.0)]
    (row,) = measured(spark, matches, [delivery(1, born_s=5000.01)])
    assert (row.wanted, row.on_time) == (2.0, 1.0)


def test_rows_of_different_weight_make_the_interval_wider(spark):
    matches = [match(n, subscriber="even") for n in range(10)]
    matches += [match(n, subscriber="uneven", weight=10.0 if n == 0 else 1.0) for n in range(10)]
    deliveries = [delivery(n, subscriber=name) for n in range(10) for name in ("even", "uneven")]
    even, uneven = measured(spark, matches, deliveries)
    assert (uneven.wanted, uneven.on_time_share, uneven.on_time_share_high) == (19.0, 1.0, 1.0)
    assert uneven.on_time_share_low < even.on_time_share_low < 1.0
    assert not math.isnan(uneven.on_time_share_low)
