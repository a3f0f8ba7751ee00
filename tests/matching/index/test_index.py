"""Does the index find exactly the filters that an event meets, whatever was added and removed before?"""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filter_strategies import events as written_events
from tests.filter_strategies import filters as written_filters
from tests.matching.boxes import events, filters, nested_texts
from tests.matching.index.column_batches import column_batch

from betimes.language.filters.parse import parse_filter
from betimes.matching.index import index as index_module
from betimes.matching.index.event_batch import TextColumn
from betimes.matching.index.index import MatchingIndex
from betimes.model.events import Value
from betimes.model.filters import EVERYTHING, Box, Filter, Flag, Interval, Presence, TextRange, TextSet

NOTHING = Filter(())


def between(low: float, high: float, name: str = "x") -> Filter:
    return Filter((Box(((name, Interval(low, high)),)),))


def expected(wanted: dict[int, Filter], attributes) -> list[int]:
    return sorted(key for key, each in wanted.items() if each.matches(attributes))


def random_boxes(seed: int, count: int, names=("x", "y", "z")) -> dict[int, Filter]:
    chance = np.random.default_rng(seed)
    wanted = {}
    for key in range(count):
        chosen = [name for name in names if chance.random() < 0.8]
        ends = [sorted(chance.random(2).round(2).tolist()) for _ in chosen]
        pairs = tuple((name, Interval(low, high)) for name, (low, high) in zip(chosen, ends, strict=True))
        wanted[key] = Filter((Box(pairs),))
    return wanted


def random_events(seed: int, count: int, names=("x", "y", "z")) -> list[dict[str, float]]:
    chance = np.random.default_rng(seed)
    return [
        {name: float(chance.random().__round__(2)) for name in names if chance.random() < 0.9}
        for _ in range(count)
    ]


@pytest.mark.long
@settings(max_examples=150)
@given(
    wanted=st.lists(filters, max_size=12),
    attributes=st.lists(events, min_size=1, max_size=4),
    steps=st.lists(st.tuples(st.integers(0, 11), st.booleans()), max_size=20),
    tail=st.sampled_from([0, 3, 256]),
)
def test_match_is_filter_matches_after_any_adding_and_removing(wanted, attributes, steps, tail):
    index = MatchingIndex()
    held: dict[int, Filter] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "TAIL_ROWS_MAX", tail)
        for number, built in [*((number, False) for number in range(len(wanted))), *steps]:
            if number in held:
                index.remove(number)
                del held[number]
            elif number < len(wanted):
                index.add(number, wanted[number])
                held[number] = wanted[number]
            if built:
                index.count_many(attributes)  # which builds the tail
    assert len(index) == len(held)
    assert [key in index for key in range(12)] == [key in held for key in range(12)]
    answers = [expected(held, each) for each in attributes]
    assert [index.match(each).tolist() for each in attributes] == answers
    assert [sorted(keys.tolist()) for keys in index.match_many(attributes)] == answers
    assert index.count_many(attributes).tolist() == [len(answer) for answer in answers]


@pytest.mark.long
@settings(max_examples=100)
@given(
    texts=st.lists(written_filters(), min_size=1, max_size=8),
    attributes=st.lists(written_events(), min_size=1, max_size=4),
)
def test_filters_that_people_write_are_matched_as_they_say(texts, attributes):
    wanted = dict(enumerate(map(parse_filter, texts)))
    index = MatchingIndex()
    index.add_many(wanted.items())
    answers = [expected(wanted, each) for each in attributes]
    assert [index.match(each).tolist() for each in attributes] == answers
    assert [sorted(keys.tolist()) for keys in index.match_many(attributes)] == answers


def test_an_interval_that_reads_no_texts_passes_over_a_text_that_looks_like_a_number():
    index = MatchingIndex()
    index.add(0, Filter((Box((("x", Interval(0, 9)),)),)))
    index.add(1, Filter((Box((("x", Interval(0, 9, reads_texts=False)),)),)))
    index.add(2, Filter((Box((("x", Flag(True)),)),)))
    index.add(3, Filter((Box((("x", Flag(True, reads_texts=False)),)),)))
    some: list[dict[str, Value]] = [{"x": 5.0}, {"x": "5"}, {"x": True}, {"x": "true"}]
    answers = [[0, 1], [0], [2, 3], [2]]
    assert [index.match(each).tolist() for each in some] == answers
    assert [sorted(keys.tolist()) for keys in index.match_many(some)] == answers


@pytest.mark.long
@settings(max_examples=40)
@given(wanted=st.lists(filters, max_size=20), attributes=st.lists(events, min_size=1, max_size=6))
def test_adding_many_at_once_is_adding_each(wanted, attributes):
    index = MatchingIndex()
    index.add_many(enumerate(wanted))
    answers = [expected(dict(enumerate(wanted)), each) for each in attributes]
    assert [index.match(each).tolist() for each in attributes] == answers
    assert [sorted(keys.tolist()) for keys in index.match_many(attributes)] == answers


@pytest.fixture(scope="module")
def thousands():
    wanted = random_boxes(1, 6000)
    index = MatchingIndex()
    index.add_many(wanted.items())
    return index, wanted


@pytest.mark.long
def test_thousands_of_boxes_are_found_exactly(thousands):
    index, wanted = thousands
    some = random_events(2, 60)
    answers = [expected(wanted, each) for each in some]
    assert [index.match(each).tolist() for each in some] == answers
    assert [sorted(keys.tolist()) for keys in index.match_many(some)] == answers


@pytest.mark.long
def test_removing_half_of_thousands_leaves_the_other_half():
    wanted = random_boxes(3, 3000)
    index = MatchingIndex()
    index.add_many(wanted.items())
    for key in range(0, 3000, 2):
        index.remove(key)
        del wanted[key]
    for key in range(1, 600, 2):
        index.remove(key)
        del wanted[key]
    some = random_events(4, 30)
    assert len(index) == len(wanted)
    assert [index.match(each).tolist() for each in some] == [expected(wanted, each) for each in some]


@pytest.mark.long
def test_single_adding_of_thousands_keeps_few_segments():
    wanted = random_boxes(5, 3000)
    index = MatchingIndex()
    for key, each in wanted.items():
        index.add(key, each)
    assert len(index._segments) <= 5
    some = random_events(6, 30)
    assert [index.match(each).tolist() for each in some] == [expected(wanted, each) for each in some]


def test_a_tail_that_is_matched_often_is_built():
    index = MatchingIndex()
    for key, each in random_boxes(7, 200).items():
        index.add(key, each)
    for _ in range(600):
        index.match({"x": 0.5})
    assert len(index._tail) == 0


def test_columns_say_the_same_as_filters():
    keys = np.array([7, 3, 5, 4, 9])
    lows = {"x": np.array([0.0, np.nan, 0.5, np.nan, 2.0])}
    highs = {"x": np.array([1.0, 0.2, np.nan, np.nan, 1.0])}
    topics = TextColumn(texts=("a", "b"), codes=np.array([0, 1, 0, 0, 1], np.int32))
    index = MatchingIndex()
    index.add_columns(keys, lows=lows, highs=highs, texts={"topic": topics})
    assert len(index) == 5
    assert 9 in index  # though nothing can meet it: its low end is above its high end
    assert index.match({"topic": "a", "x": 0.7}).tolist() == [4, 5, 7]
    assert index.match({"topic": "b", "x": 0.1}).tolist() == [3]
    assert index.match({"topic": "a"}).tolist() == [4]
    index.remove(9)
    assert 9 not in index


def test_a_key_is_taken_once():
    index = MatchingIndex()
    index.add(1, EVERYTHING)
    index.add(2, NOTHING)
    for key in (1, 2):
        with pytest.raises(ValueError, match="already"):
            index.add(key, EVERYTHING)
        with pytest.raises(ValueError, match="already"):
            index.add_many([(5, EVERYTHING), (key, EVERYTHING)])
    with pytest.raises(ValueError, match="twice"):
        index.add_many([(5, EVERYTHING), (5, EVERYTHING)])
    assert len(index) == 2
    index.count_many([{}])  # now it is in a segment
    with pytest.raises(ValueError, match="already"):
        index.add(1, EVERYTHING)
    with pytest.raises(ValueError, match="already"):
        index.add_columns(np.array([1]))


@pytest.mark.parametrize("key", [-1, 2**31])
def test_a_key_outside_31_bits_is_refused(key):
    with pytest.raises(ValueError, match="between"):
        MatchingIndex().add(key, EVERYTHING)
    with pytest.raises(ValueError, match="between"):
        MatchingIndex().add_many([(key, EVERYTHING)])


def test_removing_what_is_not_there_is_an_error():
    index = MatchingIndex()
    with pytest.raises(KeyError):
        index.remove(1)
    index.add(1, EVERYTHING)
    index.count_many([{}])
    index.remove(1)
    with pytest.raises(KeyError):
        index.remove(1)
    assert "1" not in index


def test_a_removed_key_can_be_added_again():
    index = MatchingIndex()
    index.add_many((key, between(0, 1)) for key in range(400))
    index.remove(7)
    index.add(7, between(5, 6))
    assert index.match({"x": 5.5}).tolist() == [7]
    assert 7 not in index.match({"x": 0.5}).tolist()


def test_a_filter_wanted_twice_over_is_found_once():
    twice = Filter((Box((("x", Interval(0, 2)),)), Box((("x", Interval(1, 3)),)), Box()))
    index = MatchingIndex()
    index.add_many((key, twice) for key in range(700))
    assert index.match({"x": 1.5}).tolist() == list(range(700))
    assert index.count_many([{"x": 1.5}, {}]).tolist() == [700, 700]


def test_the_largest_keys_and_finds_of_many_kinds_come_in_order():
    keys = [2**31 - 1, 0, 12_345_678, *range(1000, 1900)]
    index = MatchingIndex()
    index.add_many((key, EVERYTHING) for key in keys)
    assert index.match({}).tolist() == sorted(keys)
    dense = MatchingIndex()
    dense.add_many((key, EVERYTHING) for key in range(899, -1, -1))
    assert dense.match({}).tolist() == list(range(900))


def test_an_event_may_find_far_more_than_the_others():
    index = MatchingIndex()
    index.add_many((key, between(0, 1 if key % 100 else 5)) for key in range(5000))
    batch = column_batch(numbers={"x": np.array([3.0] * 50 + [0.5] + [3.0] * 50)})
    found = index.match_many(batch)
    assert found.counts().tolist() == [50] * 50 + [5000] + [50] * 50
    assert sorted(found.of(50).tolist()) == list(range(5000))
    assert sorted(found.of(51).tolist()) == list(range(0, 5000, 100))


@pytest.mark.long
def test_many_chunks_of_events_keep_their_order():
    index = MatchingIndex()
    index.add_many((key, between(key, key + 0.5)) for key in range(40))
    values = np.tile(np.arange(40.0), 700)
    assert index.match_many(column_batch(numbers={"x": values})).keys.tolist() == values.tolist()


def test_hundreds_of_attributes_are_matched_exactly():
    names = [f"a{number}" for number in range(120)]
    wanted = {
        key: Filter(
            (
                Box(
                    tuple(
                        sorted(
                            (names[(key * 7 + step * 11) % 120], Interval(0, key % 10)) for step in range(3)
                        )
                    )
                ),
            )
        )
        for key in range(900)
    }
    index = MatchingIndex()
    index.add_many(wanted.items())
    some = [{name: float((place * number) % 12) for place, name in enumerate(names)} for number in range(8)]
    assert [index.match(each).tolist() for each in some] == [expected(wanted, each) for each in some]


def test_long_sets_and_exclusions_of_texts_are_exact():
    texts = [f"t{number:03}" for number in range(200)]
    wanted = {
        0: Filter((Box((("k", TextSet(frozenset(texts[::2]))), ("m", TextSet(frozenset(texts[::3]))))),)),
        1: Filter((Box((("k", TextSet(frozenset(texts[::2]), excluded=True)),)),)),
        2: Filter((Box((("k", TextRange("t01", "t02", excluded=frozenset(texts[10:13]))),)),)),
        3: Filter((Box((("k", Presence(False)),)),)),
    }
    index = MatchingIndex()
    index.add_many(wanted.items())
    some: list[dict[str, Value]] = [{"k": text, "m": "t006"} for text in (*texts[:30], "other", "t01x")]
    some += [{"m": "t006"}, {"k": 5.0}]
    for each in some:
        assert index.match(each).tolist() == expected(wanted, each)
    assert [sorted(keys.tolist()) for keys in index.match_many(some)] == [
        expected(wanted, each) for each in some
    ]


@pytest.mark.long
def test_prefixes_added_in_every_order_stay_exact():
    index = MatchingIndex()
    wanted = {}
    orders = [f"p{number:04}" for number in (*range(500), *range(999, 500, -1))]
    crowded = ["m" + "a" * number for number in range(100)]  # each between the one before and the next
    for key, prefix in enumerate([*orders, "m", "n", *crowded]):
        wanted[key] = Filter((Box((("k", TextRange(prefix, prefix + "~")),)),))
        index.add(key, wanted[key])
    for text in ("p0003", "p0003x", "p0999", "m", "maaab", "ma", "q", ""):
        assert index.match({"k": text}).tolist() == expected(wanted, {"k": text})


def test_labels_without_room_are_spread_again():
    index = MatchingIndex()
    wanted = {}
    ends = nested_texts(120)
    for key, end in enumerate(ends):
        wanted[key] = Filter((Box((("k", TextRange(end, None if key % 3 else ends[0] + "~")),)),))
        index.add(key, wanted[key])
        if key in (20, 60):
            index.count_many([{}])
    for text in ("", "0", "1", *ends[::9], ends[-1] + "0", ends[-2][:-3]):
        assert index.match({"k": text}).tolist() == expected(wanted, {"k": text})


@pytest.mark.long
def test_texts_of_removed_filters_are_forgotten():
    index = MatchingIndex()
    for key in range(6000):
        index.add(key, Filter((Box((("topic", TextSet(frozenset({f"t{key}"}))),)),)))
        if key >= 50:
            index.remove(key - 50)
    assert index._lanes.text_count() < 2500
    assert index.match({"topic": "t5999"}).tolist() == [5999]
    assert index.match({"topic": "t10"}).tolist() == []


@pytest.mark.long
def test_lanes_of_removed_filters_are_reclaimed():
    index = MatchingIndex()
    nothing = Filter((Box((("x", Interval(1, 0)),)),))
    for key in range(4000):
        index.add(key, between(0, 1, f"attribute {key}") if key % 2 else nothing)
        if key >= 50:
            index.remove(key - 50)
    for key in range(4000, 8000):
        index.add(key, Filter((Box(((f"attribute {key}", Interval(1, 0)),)),)))
        index.remove(key)
    assert index._lanes.width < 1500
    assert index.match({"attribute 3999": 0.5, "attribute 3949": 0.5}).tolist() == [3999]


def test_keys_too_large_to_be_marked_come_in_order_too():
    index = MatchingIndex()
    for key in (5, 2**24, 3, 2**24 - 1, 2**30):
        index.add(key, EVERYTHING)
        assert index.match({}).tolist() == sorted(index.match({}).tolist())
    assert index.match({}).tolist() == [3, 5, 2**24 - 1, 2**24, 2**30]


def test_what_is_added_between_two_events_is_seen_by_the_second():
    index = MatchingIndex()
    for key in range(300):
        index.add(key * 70, between(0, 1, f"a{key % 90}"))
        assert key * 70 in index.match({f"a{key % 90}": 0.5}).tolist()


@pytest.mark.long
def test_a_pickled_index_answers_the_same(thousands):
    index, wanted = thousands
    copy = pickle.loads(pickle.dumps(index))
    some = random_events(8, 20)
    assert [copy.match(each).tolist() for each in some] == [index.match(each).tolist() for each in some]
    assert copy.match_many(some).keys.tolist() == index.match_many(some).keys.tolist()
    copy.add(999_999, EVERYTHING)
    assert copy.match({}).tolist()[-1] == 999_999
    assert len(copy) == len(wanted) + 1


def test_an_empty_index_and_an_empty_batch_find_nothing():
    index = MatchingIndex()
    assert index.match({"x": 1.0}).tolist() == []
    assert len(index.match_many([])) == 0
    assert index.match_many([{"x": 1.0}]).counts().tolist() == [0]
    index.add(0, EVERYTHING)
    assert index.count_many([]).tolist() == []
    assert index.match({"x": math.nan}).tolist() == [0]
