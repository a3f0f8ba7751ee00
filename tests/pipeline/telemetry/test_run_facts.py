"""Is a run summed up, and is a summary that is none refused?"""

from __future__ import annotations

import json

import pytest

from betimes.pipeline.tables.files import TablesError, write_frame
from betimes.pipeline.tables.shapes import TABLES
from betimes.pipeline.telemetry.input import TelemetryInput
from betimes.pipeline.telemetry.run_facts import FILE, RunFacts, facts_for_json, read_facts, write_facts
from betimes.pipeline.telemetry.survey import Since, Survey

SEEN = Survey(rows={"published": 3}, first_s={"a": 1.0}, last_s={"a": 9.0}, every={"a": 1})


@pytest.mark.spark
def test_a_summary_is_read_as_it_was_written(spark, tmp_path):
    rows = {
        "quarantine": [("f", "duplicate", "d", "{}", kind) for kind in ("sent", "received")],
        "reliability": [("s", "b", 4, 4.0, 3.0, 0.75, 0.3, 0.95, 6.0, 8.0)],
        "subscriptions": [
            ("s", "b", "#", "TRUE", 5.0, 1.0, 0.0, False, 0.0, until_s) for until_s in (None, 3.0)
        ],
    }
    for table in TABLES.values():
        if table.is_filled:
            write_frame(spark.createDataFrame(rows.get(table.name, []), table.ddl), table, tmp_path)
    telemetry = TelemetryInput(
        directory=tmp_path, frames={}, files=8, rows=9, labels=frozenset(), is_unfinished=False
    )
    facts = write_facts(tmp_path, telemetry, SEEN, Since(), took_s=3.0)
    assert (facts.quarantined, facts.open_subscriptions, facts.over_s) == ({"duplicate": 2}, 1, 8.0)
    assert (facts.on_time_share, facts.rows["quarantine"], facts.rows["events"]) == (0.75, 2, 0)
    kept = read_facts(tmp_path)
    assert facts_for_json(kept) == facts_for_json(facts) | {"took_s": 0.0}
    assert isinstance(kept, RunFacts)


@pytest.mark.parametrize("text", ["", "{}", "[]", json.dumps({"version": 99}), json.dumps({"version": 1})])
def test_a_summary_that_is_none_is_refused(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(TablesError, match=r"run\.json: .*\nhint: run betimes pipeline again"):
        read_facts(tmp_path)
