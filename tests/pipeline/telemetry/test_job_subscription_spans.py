"""Is it known from when to when each subscription held?"""

from __future__ import annotations

import pytest
from tests.pipeline.records import opened, record

from betimes.broker.observe.telemetry_log import TELL_AGAIN_EVERY_S
from betimes.model.telemetry import Subscribed, Unsubscribed
from betimes.pipeline.telemetry.job import subscription_spans
from betimes.pipeline.telemetry.quarantine import VERDICT, judged

pytestmark = pytest.mark.spark


def spans(spark, directory, told):
    telemetry = opened(spark, directory, told)
    good = {
        kind: judged(telemetry.frames[kind], kind, ["a"]).filter(f"{VERDICT} IS NULL")
        for kind in ("subscribed", "unsubscribed")
    }
    found = subscription_spans(good["subscribed"], good["unsubscribed"]).collect()
    return sorted((row.subscriber, row.price, row.from_s, row.until_s) for row in found)


def test_terms_that_change_begin_a_new_span_and_repetition_does_not(spark, tmp_path):
    told = [
        record(Subscribed, time_s=time_s, price=price)
        for time_s, price in ((1.0, 2.0), (5.0, 2.0), (8.0, 3.0))
    ]
    assert spans(spark, tmp_path, told) == [("s", 2.0, 1.0, 8.0), ("s", 3.0, 8.0, None)]


def test_what_ends_holds_until_then_and_may_begin_again(spark, tmp_path):
    told = [record(Subscribed, time_s=time_s) for time_s in (1.0, 9.0)]
    told += [record(Unsubscribed, time_s=time_s) for time_s in (4.0, 9.0)]
    assert spans(spark, tmp_path, told) == [("s", 2.0, 1.0, 4.0), ("s", 2.0, 9.0, None)]


def test_patterns_of_one_subscriber_are_apart_and_shared_ones_are_marked(spark, tmp_path):
    told = [record(Subscribed, pattern=pattern) for pattern in ("a", "$share/g/a")]
    told += [record(Unsubscribed, pattern="a", time_s=11.0)]
    telemetry = opened(spark, tmp_path, told)
    found = subscription_spans(telemetry.frames["subscribed"], telemetry.frames["unsubscribed"]).collect()
    assert sorted((row.pattern, row.is_shared, row.until_s) for row in found) == [
        ("$share/g/a", True, None),
        ("a", False, 11.0),
    ]


def test_what_is_left_out_when_others_are_told_again_has_ended(spark, tmp_path):
    again_s = 3 * TELL_AGAIN_EVERY_S
    told = [record(Subscribed, subscriber=name, time_s=0.0) for name in ("gone", "here")]
    told += [record(Subscribed, subscriber="here", time_s=again_s)]
    assert spans(spark, tmp_path, told) == [
        ("gone", 2.0, 0.0, TELL_AGAIN_EVERY_S),
        ("here", 2.0, 0.0, None),
    ]


def test_where_nothing_is_told_again_all_hold_on(spark, tmp_path):
    told = [
        record(Subscribed, subscriber=name, time_s=time_s) for name, time_s in (("one", 0.0), ("two", 9000.0))
    ]
    assert spans(spark, tmp_path, told) == [("one", 2.0, 0.0, None), ("two", 2.0, 9000.0, None)]
