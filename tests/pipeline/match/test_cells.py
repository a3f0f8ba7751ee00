"""Are subscriptions and events that belong together in one cell?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.pipeline.match.cells import (
    CellGroup,
    cells_of_events,
    cells_of_subscriptions,
    dimension_of,
    event_places,
    joint_group,
    separate_groups,
    subscription_cells,
    subscription_ranges,
    text_place,
)
from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.subscriptions import SubscriptionShape, read_subscriptions

TOPIC = "$topic"
EVENTS, ROWS = random_events(200), random_wishes(300)
SUBSCRIPTIONS = read_subscriptions(ROWS, SubscriptionShape.of(ROWS.schema))[0]
HAPPENED = event_columns(
    EVENTS.combine_chunks().to_batches()[0], EventShape.of(EVENTS.schema), {"speed", "lane", "kind"}
)


def dimensions(*attributes):
    found = [dimension_of(SUBSCRIPTIONS, attribute) for attribute in attributes]
    return [each[0] for each in found if each is not None]


GROUPS = {
    "one cell": [CellGroup(first_cell=0, division=None)],
    "joint": joint_group(dimensions("speed", "lane"), SUBSCRIPTIONS, 40),
    "with topic": joint_group(dimensions(TOPIC, "speed"), SUBSCRIPTIONS, 40),
    "separate": separate_groups(dimensions("speed", "lane", TOPIC), SUBSCRIPTIONS, 20),
}


@pytest.mark.long
@pytest.mark.parametrize("way", list(GROUPS))
def test_who_wants_an_event_is_in_one_of_its_cells_once(way):
    groups = GROUPS[way]
    row, cell = cells_of_subscriptions(groups, SUBSCRIPTIONS)
    places: dict[int, set[int]] = {}
    for wish, place in zip(row.tolist(), cell.tolist(), strict=True):
        places.setdefault(wish, set()).add(place)
    assert len(places) > 200  # some ask for what cannot be
    went = cells_of_events(groups, HAPPENED)
    assert went.shape == (len(groups), 200)
    numbers = {name: number for number, name in enumerate(SUBSCRIPTIONS.subscribers.to_pylist())}
    for event, names in expected(EVENTS, ROWS).items():
        for name in names:
            assert len(places[numbers[name]] & set(went[:, event].tolist())) == 1


@pytest.mark.parametrize("way", ["joint", "with topic", "separate"])
def test_cells_have_fewer_subscriptions_than_there_are(way):
    _, cell = cells_of_subscriptions(GROUPS[way], SUBSCRIPTIONS)
    counts = np.bincount(cell)
    assert len(counts) <= sum(len(group) for group in GROUPS[way])
    assert counts.max() < 250
    assert GROUPS[way][0].attributes


def test_topics_have_places_that_patterns_with_wildcards_have_not():
    lows, highs = subscription_ranges(SUBSCRIPTIONS, TOPIC)
    for pattern, low in zip(ROWS["topic"].to_pylist(), lows.tolist(), strict=True):
        assert np.isnan(low) if pattern != "city/a" else low == text_place("city/a")
    assert np.array_equal(lows, highs, equal_nan=True)
    assert event_places(HAPPENED, TOPIC)[0] == text_place(EVENTS["topic"][0].as_py())
    assert 0.0 <= text_place("") < 1.0


def test_texts_that_read_as_numbers_go_where_numbers_do():
    table = pa.table({"event": [1, 2, 3], "speed": ["61", "fast", None]})
    columns = event_columns(table.to_batches()[0], EventShape.of(table.schema), {"speed"})
    places = event_places(columns, "speed")
    assert places[0] == 61.0
    assert np.isnan(places[1:]).all()


def test_an_attribute_without_numbers_is_no_dimension():
    assert dimension_of(SUBSCRIPTIONS, "kind") is None
    found = dimension_of(SUBSCRIPTIONS, "speed")
    assert found is not None
    assert 0.0 < found[1] < 1.0
    assert found[0].low < found[0].high
    division = GROUPS["joint"][0].division
    assert division is not None
    assert subscription_cells(division.space, SUBSCRIPTIONS).shape == (300, 2, 2)
