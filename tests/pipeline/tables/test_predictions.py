"""Is what was predicted kept beside what it was predicted from?"""

from __future__ import annotations

from tests.broker.admission.test_admission import statistics

from betimes.model.statistics import subscription_id
from betimes.model.subscriptions import QoS, Subscription
from betimes.pipeline.tables.files import current_tables, new_tables, read_arrow
from betimes.pipeline.tables.predictions import (
    BY_TWIN,
    kept_predictions,
    twin_rows,
    write_predictions,
    write_rows,
)
from betimes.pipeline.tables.shapes import PREDICTIONS
from betimes.prediction.predict import predict


def test_every_subscription_has_a_row_and_a_second_time_changes_nothing(tmp_path):
    from dataclasses import replace

    with new_tables(tmp_path):
        pass
    wishes = tuple(
        Subscription(
            id=subscription_id(name, "news", "b1"), home="b1", pattern="news", qos=QoS(delay_s_max=bound_s)
        )
        for name, bound_s in (("ann", 0.1), ("bob", 1.0))
    )
    known = replace(statistics(), subscriptions=wishes)
    prediction = predict(known, early_drop=True)
    for _ in range(2):
        write_predictions(tmp_path, known, prediction, made_at_s=7.0)
    rows = read_arrow(PREDICTIONS, current_tables(tmp_path)).to_pylist()
    assert [row["subscriber"] for row in rows] == ["ann", "bob"]
    assert rows[0]["on_time_share"] < rows[1]["on_time_share"]
    assert all(row["on_time_share_low"] <= row["on_time_share"] <= row["on_time_share_high"] for row in rows)
    assert {(row["home"], row["pattern"], row["model"], row["made_at_s"]) for row in rows} == {
        ("b1", "news", "wait", 7.0)
    }


def test_what_a_twin_foretold_is_kept_with_its_deviation_and_read_by_person(tmp_path):
    with new_tables(tmp_path):
        pass
    wishes = [
        Subscription(id=subscription_id(name, pattern, "b1"), home="b1", pattern=pattern)
        for name, pattern in (("ann", "news"), ("ann", "jams"), ("bob", "news"))
    ]
    played = {wishes[0].id: (0.5, 0.25), wishes[1].id: (0.75, None), wishes[2].id: (0.9, 0.2)}
    assert kept_predictions(current_tables(tmp_path)) == {}
    write_rows(tmp_path, twin_rows(wishes, played, made_at_s=7.0, learned_at_s=5.0))
    folder = current_tables(tmp_path)
    assert kept_predictions(folder) == {("ann", "b1"): [0.5, 0.75], ("bob", "b1"): [0.9]}
    assert kept_predictions(folder, BY_TWIN) == kept_predictions(folder)
    assert kept_predictions(folder, "wait") == {}
    rows = read_arrow(PREDICTIONS, folder).to_pylist()
    ends = [(row["on_time_share_low"], row["on_time_share_high"]) for row in rows]
    assert ends[:2] == [(0.25, 0.75), (0.75, 0.75)]
    assert ends[2][1] == 1.0, "a share is at most one"
    assert {(row["made_at_s"], row["learned_at_s"]) for row in rows} == {(7.0, 5.0)}
