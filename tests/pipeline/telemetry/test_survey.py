"""Is it known which brokers wrote, and from when on rows count?"""

from __future__ import annotations

import math

import pytest
from tests.pipeline.records import opened, record

from betimes.model.errors import SettingError
from betimes.model.telemetry import Published, Subscribed
from betimes.pipeline.telemetry.survey import Since, Survey, read_since, survey

SEEN = Survey(
    rows={}, first_s={"a": 10.0, "b": 3600.0}, last_s={"a": 100.0, "b": 3650.0}, every={"a": 1, "b": 1}
)


@pytest.mark.spark
def test_each_broker_is_known_by_its_own_clock(spark, tmp_path):
    records = [record(Published, time_s=time_s, share=0.01) for time_s in (20.0, 90.0, -5.0, math.nan)]
    records += [record(Subscribed, broker="b", time_s=3600.0)]
    found = survey(opened(spark, tmp_path, records))
    assert found.brokers == ("a", "b")
    assert (found.first_s, found.last_s) == ({"a": 20.0, "b": 3600.0}, {"a": 90.0, "b": 3600.0})
    assert (found.every, found.rows["published"]) == ({"a": 100, "b": 1}, 4)


def test_a_duration_counts_back_from_each_brokers_last_row():
    assert SEEN.begins_s(read_since("30s")) == {"a": 70.0, "b": 3620.0}
    assert SEEN.over_s(read_since("30s")) == 30.0


def test_a_date_holds_on_every_clock():
    since = read_since("1970-01-01T00:01:00+00:00")
    assert since == Since(time_s=60.0)
    assert SEEN.begins_s(since) == {"a": 60.0, "b": 60.0}
    assert SEEN.over_s(since) == 50.0


def test_without_a_word_everything_counts():
    assert SEEN.begins_s(read_since(None)) == {}
    assert SEEN.over_s(Since()) == 90.0


def test_what_is_neither_duration_nor_date_is_told():
    with pytest.raises(SettingError, match=r"--since = 'yesterday'.*\nhint: write 15m"):
        read_since("yesterday")
