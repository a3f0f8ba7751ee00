"""Do rows become the subscriptions that they say, and are the others set aside with their reasons?"""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from tests.pipeline.match_tables import random_events, random_wishes, wants

from betimes.language.filters.parse import parse_filter
from betimes.model.filters import Filter
from betimes.pipeline.rows.subscriptions import (
    SubscriptionsError,
    SubscriptionShape,
    hull,
    read_subscriptions,
    reading,
)


def read(table, **place):
    return read_subscriptions(table, SubscriptionShape.of(table.schema), **place)


def test_a_row_wants_what_all_its_columns_say():
    events, rows = random_events(30), random_wishes(60)
    wishes, bad = read(rows)
    assert bad.num_rows == 0
    for place, wish in enumerate(rows.to_pylist()):
        if wish["topic"] is None:
            for event in events.to_pylist():
                assert wishes.whole_filter(place).matches(event) == wants(wish, event)


def test_rows_that_cannot_be_read_are_set_aside_with_reason_and_place():
    table = pa.table(
        {
            "subscriber": ["a", "b", None, "d", "e", "f"],
            "filter": ["x > 1", "x >> 1", "TRUE", None, "TRUE", "TRUE"],
            "pattern": ["t", "t", "t", "a/#/b", "$share/g/t", None],
        }
    )
    wishes, bad = read(table, source="wishes.csv", first_row=11)
    assert wishes.subscribers.to_pylist() == ["a", "f"]
    assert [(row["row"], row["name"], row["reason"]) for row in bad.to_pylist()] == [
        (12, "b", "filter that cannot be read"),
        (13, None, "missing value"),
        (14, "d", "topic pattern that cannot be read"),
        (15, "e", "shared subscription"),
    ]
    assert bad["source"].to_pylist() == ["wishes.csv"] * 4
    assert "^" in bad["detail"][0].as_py()


def test_a_cell_means_what_it_would_in_a_filter():
    table = pa.table(
        {"subscriber": [*"abcd"], "speed>=": ["1", "x", None, None], "kind=": ["car", "car", "1", "true"]}
    )
    wishes, bad = read(table)
    assert bad.to_pylist()[0]["detail"] == "speed>= is x"
    assert (bad["row"].to_pylist(), bad["reason"].to_pylist()) == ([2], ["value that is no number"])
    events = [{"speed": 2, "kind": "car"}, {"speed": 0, "kind": "car"}, {"kind": 1}, {"kind": "1"}]
    events += [{"kind": True}, {"kind": "true"}, {"kind": 2}]
    found = [[wishes.whole_filter(place).matches(event) for event in events] for place in range(3)]
    assert [[place for place, holds in enumerate(row) if holds] for row in found] == [[0], [2, 3], [4, 5]]


def test_members_of_shared_subscriptions_are_set_aside_in_the_pipelines_own_table():
    table = pa.table({"subscriber": ["a", "b"], "filter": ["TRUE"] * 2, "is_shared": [True, None]})
    wishes, bad = read(table)
    assert (wishes.subscribers.to_pylist(), bad["reason"].to_pylist()) == (["b"], ["shared subscription"])


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"filter": ["TRUE"]}, "no column 'subscriber'"),
        ({"subscriber": ["a"], "speed_max": [3]}, "no column constrains what is wanted"),
        ({"subscriber": ["a"], "speed>=": [True]}, "must hold numbers"),
        ({"subscriber": ["a"], "kind=": [3]}, "must hold texts"),
        ({"subscriber": ["a"], "filter": [3]}, "must hold texts"),
    ],
)
def test_a_table_that_cannot_be_subscriptions_is_refused(columns, problem):
    with pytest.raises(SubscriptionsError, match=problem):
        SubscriptionShape.of(pa.table(columns).schema, "wishes.csv")


def test_ranges_go_around_all_boxes_of_a_filter():
    assert hull(parse_filter("x BETWEEN 1 AND 2 OR x BETWEEN 5 AND 6"), "x") == (1.0, 6.0)
    assert all(map(math.isnan, hull(parse_filter("x > 1 OR y > 1"), "x")))
    table = pa.table({"subscriber": ["a", "b"], "filter": ["x < 9", None], "x>=": [1.0, 2.0]})
    wishes, _ = read(table)
    lows, highs = wishes.ranges("x")
    assert lows.tolist() == [1.0, 2.0]
    assert (highs[0], math.isnan(highs[1])) == (9.0, True)
    assert len(wishes) == 2


def test_a_text_is_read_once():
    assert reading("x > 1") is reading("x > 1")
    assert isinstance(reading("x > 1"), Filter)
    assert "expected" in str(reading("x >")) or "x >" in str(reading("x >"))


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"speed>": [1.0]}, "name intervals speed>="),
        ({"kind!=": ["car"]}, "name intervals speed>="),
        ({"Filter": ["speed > 1"]}, "did you mean filter"),
        ({"fliter": ["speed > 1"]}, "did you mean filter"),
        ({"pattern": ["a/#"]}, "remove one"),
    ],
)
def test_a_column_that_was_meant_to_say_something_is_not_left_out_in_silence(more, hint):
    table = pa.table({"subscriber": ["a"], "topic": ["#"], "note": ["mine"]})
    SubscriptionShape.of(table.schema)
    with pytest.raises(SubscriptionsError, match=hint):
        SubscriptionShape.of(pa.table({name: table[name] for name in table.column_names} | more).schema)
