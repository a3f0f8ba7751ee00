"""Do trees of topics find what the plain definition of MQTT 5 finds, whatever came and went before?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.matching import topics as topics_module
from betimes.matching.topics import (
    BYTES_MAX,
    LEVELS_MAX,
    TopicNames,
    TopicTree,
    check_topic_name,
    check_topic_pattern,
    patterns_overlap,
    shared_parts,
    topic_matches,
)
from betimes.model.errors import TextError

LEVELS = ["", "a", "b", "$SYS", "$"]


def joined(levels: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(levels, min_size=1, max_size=4).map("/".join).filter(bool)


names = joined(st.sampled_from(LEVELS))
patterns = st.one_of(
    joined(st.sampled_from([*LEVELS, "+"])),
    st.lists(st.sampled_from([*LEVELS, "+"]), max_size=3).map(lambda levels: "/".join([*levels, "#"])),
)


def node_count(tree: TopicTree[Any]) -> int:
    """Return how many levels the tree holds for patterns with wildcards."""
    count, waiting = 0, [tree._root]
    while waiting:
        below = list((waiting.pop().below or {}).values())
        count += len(below)
        waiting += below
    return count


ALL_NAMES = [
    "/".join(levels)
    for levels in [
        *((a,) for a in [*LEVELS, "c"] if a),
        *((a, b) for a in [*LEVELS, "c"] for b in [*LEVELS, "c"]),
        *((a, b, c) for a in [*LEVELS, "c"] for b in [*LEVELS, "c"] for c in [*LEVELS, "c"]),
    ]
]


@pytest.mark.mqtt("MQTT-3.3.2-3", "MQTT-4.7.2-1")
@pytest.mark.parametrize(
    ("pattern", "met", "not_met"),
    [
        ("sport/tennis/#", ["sport/tennis", "sport/tennis/", "sport/tennis/a/b"], ["sport", "sport/tennisx"]),
        ("sport/+", ["sport/", "sport/tennis"], ["sport", "sport/a/b"]),
        ("+/+", ["/finance", "a/b", "/"], ["finance", "a/b/c", "$SYS/a"]),
        ("/+", ["/finance"], ["finance"]),
        ("+", ["finance"], ["/finance", "$SYS"]),
        ("#", ["a", "/", "a/$b"], ["$SYS", "$SYS/a"]),
        ("$SYS/#", ["$SYS", "$SYS/a"], ["SYS/a"]),
        ("$SYS/+", ["$SYS/a"], ["$SYS", "$SYS/a/b"]),
        ("a/b", ["a/b"], ["A/b", "a/b/", "/a/b"]),
    ],
)
def test_the_definition_agrees_with_the_examples_of_the_standard(pattern, met, not_met):
    assert [topic_matches(pattern, topic) for topic in met] == [True] * len(met)
    assert [topic_matches(pattern, topic) for topic in not_met] == [False] * len(not_met)


@pytest.mark.long
@given(patterns, patterns)
def test_patterns_overlap_when_some_topic_meets_both(one, other):
    meets_both = any(topic_matches(one, topic) and topic_matches(other, topic) for topic in ALL_NAMES)
    if max(one.count("/"), other.count("/")) < 3:  # else a topic may be longer than those tried
        assert patterns_overlap(one, other) == meets_both
    else:
        assert patterns_overlap(one, other) or not meets_both
    assert patterns_overlap(one, other) == patterns_overlap(other, one)


@given(
    st.lists(st.tuples(st.booleans(), patterns, st.integers(0, 12), names), max_size=60),
    st.integers(1, 8),
)
def test_the_tree_equals_the_definition_after_any_changes(steps, cached_max):
    tree: TopicTree[int] = TopicTree()
    held: set[tuple[str, int]] = set()
    usual = topics_module.TOPICS_CACHED_MAX
    topics_module.TOPICS_CACHED_MAX = cached_max
    try:
        for adding, pattern, key, topic in steps:
            if adding:
                assert tree.add(pattern, key) == ((pattern, key) not in held)
                held.add((pattern, key))
            else:
                assert tree.remove(pattern, key) == ((pattern, key) in held)
                held.discard((pattern, key))
            wanted = Counter(key for pattern, key in held if topic_matches(pattern, topic))
            assert Counter(tree.match(topic)) == wanted
            assert Counter(tree.match(topic)) == wanted  # now from memory
            assert len(tree) == len(held)
    finally:
        topics_module.TOPICS_CACHED_MAX = usual
    for pattern, key in held:
        assert tree.remove(pattern, key)
    assert len(tree) == node_count(tree) == 0


@given(st.lists(st.tuples(st.booleans(), names, patterns), max_size=60))
def test_the_names_that_meet_a_pattern_are_those_of_the_definition(steps):
    kept = TopicNames()
    held: set[str] = set()
    for adding, name, pattern in steps:
        if adding:
            assert kept.add(name) == (name not in held)
            held.add(name)
        else:
            assert kept.remove(name) == (name in held)
            held.discard(name)
        assert sorted(kept.meeting(pattern)) == sorted(name for name in held if topic_matches(pattern, name))
        assert len(kept) == len(held)
        assert (name in kept) == (name in held)


def test_a_key_under_two_patterns_is_found_twice():
    tree: TopicTree[str] = TopicTree()
    assert [tree.add(pattern, "k") for pattern in ("a/+", "a/b", "a/b")] == [True, True, False]
    assert tree.match("a/b") == ("k", "k")


def test_many_keys_under_one_pattern_come_and_go():
    tree: TopicTree[int] = TopicTree()
    for pattern in ("a/b", "a/+", "a/#"):
        for key in range(40):
            assert tree.add(pattern, key)
            assert not tree.add(pattern, key)
    assert Counter(tree.match("a/b")) == Counter(dict.fromkeys(range(40), 3))
    for pattern in ("a/b", "a/+", "a/#"):
        for key in range(40):
            assert tree.remove(pattern, key)
            assert not tree.remove(pattern, key)
    assert tree.match("a/b") == ()
    assert node_count(tree) == len(tree) == 0


def test_a_removed_pattern_leaves_no_level_behind():
    tree: TopicTree[int] = TopicTree()
    tree.add("a/+/c/d", 1)
    tree.add("a/+/#", 2)
    assert node_count(tree) == 4
    tree.remove("a/+/c/d", 1)
    assert node_count(tree) == 2
    tree.remove("a/+/#", 2)
    assert node_count(tree) == 0


def test_a_topic_asked_before_is_answered_from_memory():
    tree: TopicTree[int] = TopicTree()
    tree.add("a/+", 1)
    assert tree.match("a/b") is tree.match("a/b")


def test_what_is_remembered_is_bounded_in_topics_and_keys(monkeypatch):
    monkeypatch.setattr(topics_module, "TOPICS_CACHED_MAX", 10)
    monkeypatch.setattr(topics_module, "CACHED_KEYS_MAX", 30)
    tree: TopicTree[int] = TopicTree()
    for key in range(7):
        tree.add("#", key)
    for number in range(50):
        tree.match(f"t{number}")
        assert len(tree._cache) <= 4  # of seven keys each
    tree.match("x" * 2000)
    assert "x" * 2000 not in tree._cache
    for key in range(7):
        tree.remove("#", key)
    for number in range(50):
        tree.match(f"t{number}")
        assert len(tree._cache) <= 10


@pytest.mark.parametrize(
    "text",
    ["a", "/", "a/b", "/a//b/", "$SYS/x", " ", "é/\U0001f600", "/" * (LEVELS_MAX - 1), "a" * BYTES_MAX],
)
def test_right_names_are_right_patterns_too(text):
    check_topic_name(text)
    check_topic_pattern(text)


@pytest.mark.parametrize("text", ["+", "#", "+/+", "a/#", "/#", "+/#", "a/+/b", "$share/g/#", "//+//#"])
def test_wildcards_are_for_patterns_and_not_for_names(text):
    check_topic_pattern(text)
    with pytest.raises(TextError, match="a topic name has no"):
        check_topic_name(text)


@pytest.mark.mqtt("MQTT-4.7.3-1", "MQTT-4.7.3-2", "MQTT-4.7.3-3")
@pytest.mark.parametrize("check", [check_topic_name, check_topic_pattern])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be empty"),
        ("a\0b", "has no U\\+0000"),
        ("a" * (BYTES_MAX + 1), "at most 65,535 bytes"),
        ("é" * (BYTES_MAX // 2 + 1), "at most 65,535 bytes"),
        ("/" * LEVELS_MAX, "at most 128 levels"),
        ("a\ud800", "half a letter"),
    ],
)
def test_a_text_that_is_no_topic_is_refused_with_its_reason(check, text, said):
    with pytest.raises(TextError, match=said) as caught:
        check(text)
    assert len(str(caught.value)) < 400
    assert caught.value.hint


@pytest.mark.mqtt("MQTT-4.7.1-1", "MQTT-4.7.1-2")
@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("a/b#", 3, "# must be alone"),
        ("a/#b", 2, "# must be alone"),
        ("#/a", 0, "# must be the last level"),
        ("a/#/", 2, "# must be the last level"),
        ("a/b+/c", 3, "\\+ must be alone"),
        ("++", 0, "\\+ must be alone"),
        ("+#", 0, "\\+ must be alone"),
    ],
)
def test_a_wrong_pattern_is_refused_with_its_place(text, position, said):
    with pytest.raises(TextError, match=said) as caught:
        check_topic_pattern(text)
    assert (caught.value.text, caught.value.position) == (text, position)


def test_the_place_in_a_long_text_is_shown_without_all_of_it():
    with pytest.raises(TextError) as caught:
        check_topic_pattern("long/" * 50 + "b#" + "/long" * 50)
    assert caught.value.text[caught.value.position] == "#"
    assert len(caught.value.text) < 80


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("a/#", (None, "a/#")),
        ("$share", (None, "$share")),
        ("$SYS/#", (None, "$SYS/#")),
        ("$share/g/a", ("g", "a")),
        ("$share/g//", ("g", "/")),
        ("$share/g/$SYS/+", ("g", "$SYS/+")),
    ],
)
def test_a_shared_pattern_is_split_at_its_group(pattern, parts):
    assert shared_parts(pattern) == parts


@pytest.mark.parametrize(
    "pattern",
    ["$share/", "$share//a", "$share/g", "$share/g/", "$share/+/a", "$share/a#b/a", "$share/g/a#", "a#"],
)
def test_a_shared_pattern_without_group_or_pattern_is_refused(pattern):
    with pytest.raises(TextError):
        shared_parts(pattern)
