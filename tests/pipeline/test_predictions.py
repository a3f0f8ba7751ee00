"""Is what was predicted kept beside what it was predicted from?"""

from __future__ import annotations

from tests.server.test_promises import statistics

from betimes.model.statistics import subscription_id
from betimes.model.subscriptions import QoS, Subscription
from betimes.pipeline.predictions import write_predictions
from betimes.pipeline.table_files import current_tables, new_tables, read_arrow
from betimes.pipeline.tables import PREDICTIONS
from betimes.qos.prediction import predict


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
