"""Do texts that must be equal, and the check afterwards, decide as topic patterns do?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.index.column_batches import encoded_texts

from betimes.matching.topics import topic_matches
from betimes.pipeline.rows.topic_lanes import (
    LEVELS_MAX,
    PatternCheck,
    is_checked_afterwards,
    lane_of,
    pattern_columns,
    topic_columns,
)

levels = st.sampled_from(("a", "b", "", "$own"))
topics = st.lists(levels, min_size=1, max_size=4).map("/".join)
patterns = st.tuples(
    st.lists(levels | st.just("+"), min_size=1, max_size=LEVELS_MAX + 2), st.sampled_from(([], ["#"]))
).map(lambda parts: "/".join([*parts[0], *parts[1]]))


@given(patterns | st.just("#"), topics)
def test_lanes_and_check_together_decide_as_the_pattern_does(pattern, topic):
    lane = lane_of(pattern)
    holds = True
    if lane is not None:
        name, text = lane
        column = topic_columns(encoded_texts([topic]), [name])[name]
        holds = column.codes[0] >= 0 and column.texts[column.codes[0]] == text
    if holds and is_checked_afterwards(pattern):
        holds = PatternCheck([pattern]).meets(np.zeros(1, np.int64), [topic], np.zeros(1, np.int64))[0]
    assert bool(holds) == topic_matches(pattern, topic)


def test_patterns_become_columns_of_texts():
    columns = pattern_columns(encoded_texts(["a/b", "a/#", None, "+/c", "x"]))
    assert set(columns) == {"$topic", "$topic:1"}
    assert columns["$topic"].texts == ("a/b", "x")
    assert columns["$topic"].codes.tolist() == [0, -1, -1, -1, 1]
    assert columns["$topic:1"].codes.tolist() == [-1, 0, -1, -1, -1]


def test_an_event_without_a_topic_meets_only_what_asks_for_none():
    check = PatternCheck(["#", "+"])
    assert check.meets(np.array([0]), ["a"], np.array([1])).tolist() == [True]
    assert topic_columns(encoded_texts([None]), ["$topic"])["$topic"].codes.tolist() == [-1]
