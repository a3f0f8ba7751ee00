"""Does a set find who wants an event, also after it was saved and mapped?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.subscription_set import SubscriptionSet, load_set, save_set
from betimes.pipeline.rows.subscriptions import SubscriptionShape, read_subscriptions


def built(wishes):
    return SubscriptionSet(read_subscriptions(wishes, SubscriptionShape.of(wishes.schema))[0])


def columns(events, wanted):
    (rows,) = events.combine_chunks().to_batches()
    return event_columns(rows, EventShape.of(events.schema), wanted.attributes)


def found(wanted, events):
    answer = wanted.find_people(columns(events, wanted))
    people = wanted.people.to_pylist()
    return {
        event: sorted(people[key] for key in answer.keys[first:stop])
        for event, first, stop in zip(
            answer.events.tolist(), answer.offsets[:-1], answer.offsets[1:], strict=True
        )
        if stop > first
    }


@pytest.mark.long
@pytest.mark.parametrize("people", [None, 40])
def test_a_set_finds_each_subscriber_once(people, tmp_path):
    events, wishes = random_events(120), random_wishes(400, people=people)
    wanted = built(wishes)
    assert wanted.is_repeated == (people is not None)
    assert len(wanted) == 400
    answer = expected(events, wishes)
    assert found(wanted, events) == answer
    save_set(wanted, tmp_path / "wishes.set")
    mapped = load_set(tmp_path / "wishes.set")
    assert found(mapped, events) == answer
    counts = mapped.count(columns(events, mapped))
    assert {place: count for place, count in enumerate(counts.tolist()) if count} == {
        event: len(names) for event, names in answer.items()
    }


@pytest.mark.long
def test_a_mapped_set_lies_at_whole_cache_lines_and_can_be_written_to(tmp_path):
    wanted = built(random_wishes(3000))
    size_bytes = save_set(wanted, tmp_path / "wishes.set")
    assert size_bytes == (tmp_path / "wishes.set").stat().st_size
    mapped = load_set(tmp_path / "wishes.set")
    mapped.index.remove(7)  # in this process only
    assert 7 not in mapped.index
    assert 7 in load_set(tmp_path / "wishes.set").index


def test_events_nobody_wants_stand_between_others():
    wishes = pa.table({"subscriber": ["a", "b"], "speed>=": [10.0, 20.0]})
    events = pa.table({"event": np.arange(7), "speed": [0.0, 30.0, 0.0, 0.0, 15.0, 0.0, 30.0]})
    assert found(built(wishes), events) == {1: ["a", "b"], 4: ["a"], 6: ["a", "b"]}
    answer = built(wishes).find(columns(events, built(wishes)))
    assert answer.counts().sum() == 5


def test_a_set_of_nobody_finds_nobody():
    wishes = random_wishes(5).slice(0, 0)
    assert found(built(wishes), random_events(10)) == {}
