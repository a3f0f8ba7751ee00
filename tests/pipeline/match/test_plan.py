"""Is it well chosen whether and how subscriptions are divided?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from betimes.model.errors import SettingError
from betimes.pipeline.match.plan import (
    MatchPlan,
    MatchSettings,
    Sample,
    attribute_name,
    divided_plan,
    tasks_for,
)
from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.subscriptions import SubscriptionShape, read_subscriptions

TASKS = 16


def sample(wishes, events, subscriptions=5_000_000, event_count=1_000_000):
    table, happened = pa.table(wishes), pa.table(events)
    read = read_subscriptions(table, SubscriptionShape.of(table.schema))[0]
    columns = event_columns(
        happened.to_batches()[0], EventShape.of(happened.schema), set(happened.schema.names)
    )
    return Sample(
        sampled=read, subscriptions=subscriptions, bytes_each=200.0, happened=columns, events=event_count
    )


def plan_of(given, index_mb_max=300.0):
    return divided_plan(given, MatchSettings(index_mb_max=index_mb_max), TASKS, is_repeated=False)


def boxes(chance, attributes, constrained, width, count=4000):
    columns = {"subscriber": np.arange(count)}
    told = chance.random((attributes, count)).argsort(axis=0) < constrained
    for number in range(attributes):
        low = np.where(told[number], chance.random(count) * (1 - width), np.nan)
        columns[f"a{number}>="] = pa.array(low, from_pandas=True)
        columns[f"a{number}<="] = pa.array(low + width, from_pandas=True)
    return columns


def points(chance, attributes, count=4000):
    return {"event": np.arange(count)} | {f"a{number}": chance.random(count) for number in range(attributes)}


def test_subscriptions_that_all_look_at_one_attribute_are_divided_by_it():
    chance = np.random.default_rng(1)
    plan = plan_of(sample(boxes(chance, 1, 1, 0.01), points(chance, 1)))
    assert [group.attributes for group in plan.groups] == [("a0",)]
    assert plan.copies < 1.3
    assert plan.event_copies == 1.0
    assert plan.cell_mb_max <= 110
    assert plan.worker_mb < 1300


@pytest.mark.long
def test_where_each_looks_at_few_of_many_attributes_events_are_copied_instead():
    chance = np.random.default_rng(2)
    plan = plan_of(sample(boxes(chance, 8, 2, 0.05), points(chance, 8)), index_mb_max=60.0)
    assert len(plan.groups) > 2
    assert plan.copies < 3.0
    facts = plan.facts()
    assert facts["copies_of_an_event"] > 2
    assert min(facts["work_s_of_ways_tried"].values()) < facts["work_s_of_ways_tried"]["dealt out"]


def test_what_nothing_tells_apart_is_dealt_out():
    count = 500
    wishes = {"subscriber": np.arange(count), "filter": ["TRUE"] * count}
    plan = plan_of(sample(wishes, {"event": np.arange(100), "x": np.arange(100.0)}))
    (share,) = plan.shares
    assert share.shards == 10
    assert plan.event_copies == 10.0


def test_a_topic_that_nearly_all_events_have_is_no_more_work_for_one_task():
    chance = np.random.default_rng(3)
    names = [f"t{number}" for number in range(500)]
    wishes = {"subscriber": np.arange(4000), "topic": chance.choice(names, 4000).tolist()}
    hot = np.where(chance.random(4000) < 0.9, "t7", chance.choice(names, 4000))
    given = sample(wishes, {"event": np.arange(4000), "topic": hot.tolist()}, event_count=50_000_000)
    plan = plan_of(given)
    assert plan.groups[0].attributes == ("$topic",)
    assert max(share.salts for share in plan.shares) > 1
    assert plan.task_share_max < 2.0 / TASKS
    assert plan.copies < 2.0


def test_few_subscriptions_are_one_index():
    plan = MatchPlan(subscriptions=1000, events=5, index_mb=0.3, index_mb_max=512)
    assert not plan.is_divided
    assert plan.facts()["because"] == "the index takes about 0 MB, no more than 512 MB"


def test_there_are_tasks_for_all_cores_and_for_cells_that_fit():
    assert tasks_for(2, MatchSettings(), 1000.0) == 8
    assert tasks_for(2, MatchSettings(index_mb_max=10.0), 1000.0) == 300
    assert tasks_for(2, MatchSettings(tasks=3), 1000.0) == 3
    assert attribute_name("$topic") == "topic"


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(SettingError, match="--index-mb"):
        MatchSettings(index_mb_max=0.0)
    with pytest.raises(SettingError, match="tasks"):
        MatchSettings(tasks=0)
