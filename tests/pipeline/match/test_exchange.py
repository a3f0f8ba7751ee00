"""Do subscriptions and events meet in the tasks that the plan names, and nowhere twice?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.pipeline.match.cells import dimension_of, separate_groups
from betimes.pipeline.match.exchange import (
    BLOCKS,
    ROW,
    CellMatching,
    EventPacking,
    Handout,
    Packer,
    SubscriptionPacking,
    bad_rows,
    packed,
    unpacked,
)
from betimes.pipeline.match.forms import Form, answer_schema
from betimes.pipeline.match.plan import CellShare
from betimes.pipeline.rows.events import EventShape
from betimes.pipeline.rows.sources import PieceReader
from betimes.pipeline.rows.subscriptions import SubscriptionShape, read_subscriptions
from betimes.pipeline.tables.files import arrow_schema

EVENTS, ROWS = random_events(200), random_wishes(300)
READER = PieceReader(in_files=False, name="table")
SHAPE, WISH_SHAPE = EventShape.of(EVENTS.schema), SubscriptionShape.of(ROWS.schema)


@pytest.mark.long
def test_blocks_meet_and_everybody_is_found_once():
    wishes = read_subscriptions(ROWS, WISH_SHAPE)[0]
    found = [dimension_of(wishes, name) for name in ("speed", "lane")]
    groups = tuple(separate_groups([each[0] for each in found if each is not None], wishes, 40))
    cells = sum(len(group) for group in groups)
    shapes = [(1, 1), (2, 1), (1, 3), (2, 2)]
    shares, first = [], 0
    for cell in range(cells):
        shards, salts = shapes[cell % 4]
        tasks = tuple((first + unit) % 5 for unit in range(shards * salts))
        shares.append(CellShare(shards=shards, salts=salts, tasks=tasks))
        first += shards * salts
    handout = Handout.of(shares)
    packing = SubscriptionPacking(reader=READER, shape=WISH_SHAPE, groups=groups, handout=handout)
    happening = EventPacking(
        reader=READER,
        shape=SHAPE,
        columns=tuple(SHAPE.needed({"speed", "lane", "kind"})),
        groups=groups,
        handout=handout,
    )
    blocks = [*packing.run(iter(ROWS.to_batches(100))), *happening.run(iter(EVENTS.to_batches(90)))]
    table = pa.Table.from_batches(blocks, arrow_schema(BLOCKS)).sort_by(
        [("cell", "ascending"), ("kind", "ascending")]
    )
    fields = [pa.field(ROW, pa.int64()), EVENTS.schema.field("event")]
    matching = CellMatching(
        subscription_shape=WISH_SHAPE,
        event_shape=SHAPE,
        form=Form.PAIRS,
        schema=answer_schema(fields, Form.PAIRS, pa.string()),
    )
    rows = []
    for task in range(5):
        mine = table.filter(pa.compute.equal(table["task"], task))
        rows += [row for batch in matching.run(iter(mine.to_batches())) for row in batch.to_pylist()]
    pairs = sorted((row["event"], row["subscriber"]) for row in rows)
    assert pairs == sorted((event, name) for event, names in expected(EVENTS, ROWS).items() for name in names)
    assert len({row[ROW] for row in rows}) == len({row["event"] for row in rows})


def test_salts_share_events_evenly_and_shards_share_subscriptions():
    handout = Handout.of([CellShare(shards=2, salts=3, tasks=(0, 1, 2, 3, 4, 5))])
    rows = np.arange(600)
    row, task, unit = handout.of_events(rows, np.zeros(600, np.int64), first=1)
    assert np.bincount(task).tolist() == [200] * 6
    assert np.array_equal(task, unit)
    assert len(row) == 1200
    row, task, _ = handout.of_subscriptions(rows, np.zeros(600, np.int64), first=0)
    assert np.bincount(task).tolist() == [300] * 6
    assert set(row[task == 0]).isdisjoint(row[task == 3])


def test_rows_are_packed_and_unpacked_as_they_were():
    (rows,) = EVENTS.combine_chunks().to_batches()
    assert unpacked(packed(rows)).to_pylist() == EVENTS.to_pylist()
    packer = Packer(1)
    task = np.arange(200) % 3
    blocks = [*packer.put(rows, task, task), *packer.rest()]
    assert [block["task"][0].as_py() for block in blocks] == [0, 1, 2]
    assert sum(unpacked(block["block"][0].as_py()).num_rows for block in blocks) == 200
    assert list(packer.put(rows.slice(0, 0), task[:0], task[:0])) == []
    assert all(block.schema == arrow_schema(BLOCKS) for block in blocks)


def test_rows_that_cannot_be_read_are_found_by_tasks():
    table = pa.table({"subscriber": ["a", "b"], "filter": ["x >", "TRUE"]})
    found = bad_rows(READER, SubscriptionShape.of(table.schema), iter(table.to_batches()))
    rows = [row for batch in found for row in batch.to_pylist()]
    assert [(row["source"], row["row"], row["name"]) for row in rows] == [("table", 1, "a")]


def test_a_cell_without_subscriptions_tells_only_of_what_cannot_be_read():
    events = pa.table({ROW: [1, 2], "event": [1, 2], "content": ["{}", "{"]})
    shape = EventShape.of(events.schema, ["event"])
    fields = [pa.field(ROW, pa.int64()), pa.field("event", pa.int64())]
    matching = CellMatching(
        subscription_shape=WISH_SHAPE,
        event_shape=shape,
        form=Form.LISTS,
        schema=answer_schema(fields, Form.LISTS, pa.string()),
    )
    rows = [
        row
        for batch in matching.answers([(0, 1, packed(events.to_batches()[0]))])
        for row in batch.to_pylist()
    ]
    assert [(row["event"], row["subscribers"]) for row in rows] == [(2, None)]
