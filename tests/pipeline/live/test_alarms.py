"""Is an alarm told when measured and predicted part, and when they meet again, and not in between?"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from betimes.pipeline.live.alarms import ROWS_MIN, Alarm, Watch, write_alarms

ANNA = ("anna", "b1")


def row(share: float, *, half: float = 0.05, rows: int = 100) -> dict[str, Any]:
    return {
        "subscriber": "anna",
        "home": "b1",
        "count_rows": rows,
        "on_time_share": share,
        "on_time_share_low": max(share - half, 0.0),
        "on_time_share_high": min(share + half, 1.0),
    }


def states(watch: Watch, *shares: float, predicted: list[float]) -> list[list[str]]:
    return [[each.state for each in watch.look([row(share)], {ANNA: predicted}, 1.0)] for share in shares]


def test_an_alarm_begins_once_and_ends_once():
    watch = Watch(0.1)
    assert states(watch, 0.9, 0.7, 0.6, 0.88, 0.9, predicted=[0.9]) == [[], ["begins"], [], ["ends"], []]
    assert watch.open == 0


def test_better_than_predicted_is_told_too():
    assert states(Watch(0.1), 0.9, predicted=[0.5]) == [["begins"]]


def test_what_lies_between_the_shares_of_several_subscriptions_is_as_predicted():
    assert states(Watch(0.1), 0.6, 0.95, 0.1, predicted=[0.3, 0.99]) == [[], [], ["begins"]]


def test_few_rows_and_who_is_not_predicted_say_nothing():
    watch = Watch(0.1)
    assert watch.look([row(0.1, rows=ROWS_MIN - 1)], {ANNA: [0.9]}, 1.0) == []
    assert watch.look([row(0.1)], {}, 1.0) == []


def test_alarms_are_rows_of_a_table(tmp_path):
    (alarm,) = Watch(0.1).look([row(0.2)], {ANNA: [0.9]}, 7.0)
    assert isinstance(alarm, Alarm)
    write_alarms(tmp_path, [alarm])
    write_alarms(tmp_path, [alarm])
    assert write_alarms(tmp_path, []) is None
    found = pq.read_table(tmp_path / "alarms").to_pylist()
    assert len(found) == 2
    assert (found[0]["subscriber"], found[0]["state"], found[0]["at_s"]) == ("anna", "begins", 7.0)
