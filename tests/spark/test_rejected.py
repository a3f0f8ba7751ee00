"""Are events that cannot be read told with their names and the reason?"""

from __future__ import annotations

import pyarrow as pa

from betimes.pipeline.match.files import UNREADABLE
from betimes.pipeline.rows.events import EventShape
from betimes.pipeline.rows.sources import PieceReader
from betimes.spark.rejected import REJECTED, RejectedEvents


def test_a_task_tells_which_of_its_events_cannot_be_read():
    events = pa.table({"origin": ["a", "a", "b"], "number": [1, 2, None], "content": ["{}", "7", "{}"]})
    shape = EventShape.of(events.schema)
    columns = tuple(shape.needed(frozenset()))
    task = RejectedEvents(reader=PieceReader(in_files=False, name="events"), shape=shape, columns=columns)
    rows = [row for batch in task.run(iter(events.select(columns).to_batches())) for row in batch.to_pylist()]
    assert [row["place"] for row in rows] == ["origin a, number 2", "origin b, number None"]
    assert {row["source"] for row in rows} == {"events"}
    assert {row["reason"] for row in rows} == {UNREADABLE}
    assert rows[0]["detail"] == "content is no JSON object: 7"


def test_tasks_whose_events_can_be_read_tell_nothing():
    events = pa.table({"event": [1, 2], "speed": [1.0, None]})
    shape = EventShape.of(events.schema)
    task = RejectedEvents(reader=PieceReader(in_files=False, name="events"), shape=shape, columns=("event",))
    assert list(task.run(iter(events.select(["event"]).to_batches()))) == []
    assert REJECTED.names == ["source", "place", "reason", "detail"]
