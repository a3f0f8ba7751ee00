"""Does a replay tell who would have received what, when, and with what chance in time?"""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tests.pipeline.replay_tables import write_events, write_tables

from betimes.pipeline.replay.delays import ReplayRoutes
from betimes.pipeline.replay.replay import (
    CARRIED,
    ReplayRequest,
    ReplayTask,
    replay,
    summed_up,
)
from betimes.pipeline.replay.terms import terms_of

WISHES = pa.table(
    {
        "subscriber": ["lost", "ann", "ann", "bob", "eve", "wrong", "idle"],
        "home": ["mars", "b", "b", "b", "a", "b", "b"],
        "filter": ["TRUE", "x > 1", "x > 5", "x > 5", "TRUE", "x >> 1", "x > 99"],
        "delay_s_max": [1.0, 1.0, 3.0, 1.5, None, 1.0, 1.0],
        "price": [1.0, 1.0, 2.0, 4.0, None, 1.0, 1.0],
    }
)


def tables(tmp_path):
    folder = tmp_path / "tables" / "runs" / "000001"
    write_tables(folder, links=[("a", "b", 1.0, 0.25, 0.0)], matching_s={"a": 0.0})
    write_events(folder, [{"content": json.dumps({"x": x}), "share": 0.5} for x in (0, 3, 9)])
    (tmp_path / "tables" / "current").symlink_to(folder)
    return tmp_path / "tables"


@pytest.mark.spark
def test_a_replay_writes_who_would_have_received_what(spark, tmp_path):
    pa_csv.write_csv(WISHES, tmp_path / "wishes.csv")
    request = ReplayRequest(
        tables=tables(tmp_path), subscriptions=str(tmp_path / "wishes.csv"), out=tmp_path / "out"
    )
    facts = replay(spark, request)
    rows = pq.read_table(tmp_path / "out" / "matches").to_pylist()
    found = {(row["number"], row["subscriber"]): row for row in rows}
    assert set(found) == {(1, "ann"), (2, "ann"), (2, "bob"), (0, "eve"), (1, "eve"), (2, "eve")}
    assert found[1, "ann"]["on_time_chance"] == pytest.approx(0.56653, abs=1e-5)
    best = found[2, "ann"]  # the widest bound and the highest price of both
    assert (best["delay_s_allowed"], best["price"], best["arrives_s"]) == (3.0, 2.0, 101.0)
    assert best["on_time_chance"] == pytest.approx(0.99771, abs=1e-5)
    assert found[2, "bob"]["on_time_chance"] == pytest.approx(0.84880, abs=1e-5)
    assert (found[0, "eve"]["on_time_chance"], found[0, "eve"]["weight"]) == (1.0, 2.0)
    people = {row["subscriber"]: row for row in facts.subscribers.to_pylist()}
    assert people["bob"]["wanted"] == 2.0
    assert people["bob"]["earning"] == pytest.approx(2 * 4 * 0.84880, abs=1e-4)
    assert facts.as_dict()["wanted"] == 12.0
    assert (people["idle"]["wanted"], people["idle"]["on_time_share"]) == (0.0, None)
    assert list(people) == ["ann", "bob", "eve", "idle"]
    assert facts.set_aside == 2
    bad = pq.read_table(tmp_path / "out" / "quarantine.parquet").to_pylist()
    assert [(row["name"], row["row"], row["reason"]) for row in bad] == [
        ("lost", 1, "unknown home"),
        ("wrong", 6, "filter that cannot be read"),
    ]
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["set_aside"] == 2
    assert summed_up(spark, str(tmp_path / "out" / "matches")).num_rows == 3


def test_where_no_way_leads_nothing_arrives():
    one = np.array([[1.0]])
    routes = ReplayRoutes(
        brokers=("a",),
        homes=("z",),
        fixed_s_mean=one * math.inf,
        fixed_s_variance=one * 0.0,
        s_per_kb_mean=one * 0.0,
        s_per_kb_variance=one * 0.0,
        arriving_share=one * 0.0,
    )
    terms = terms_of(pa.table({"subscriber": ["ann"], "home": ["z"]}))
    batch = pa.RecordBatch.from_pylist(
        [dict(zip(CARRIED, ("a", 1, "a", 5.0, 1.0, math.inf, 1.0), strict=True)) | {"subscribers": [0]}]
    )
    (row,) = ReplayTask(routes=routes, terms=terms).outcome(batch).to_pylist()
    assert (row["arrives_s"], row["on_time_chance"], row["price"]) == (None, 0.0, 1.0)
    assert math.isinf(terms.bound_s[0])
