"""Is a filter explained as it works?"""

from __future__ import annotations

import json

import pytest

from betimes.cli.app import run
from betimes.cli.filter import describe, describe_box, filter_facts, read_attributes
from betimes.language.filters.parse import parse_filter
from betimes.model.errors import SettingError
from betimes.model.filters import Box, Flag, Interval, Presence, TextRange, TextSet


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (Interval(50, 80, low_inside=False), "50 < a <= 80"),
        (Interval(high=3, high_inside=False), "a < 3"),
        (Interval(5, 5), "a = 5"),
        (Interval(), "a is a number"),
        (TextSet(frozenset({"x", "y"})), "a is in {'x', 'y'}"),
        (TextSet(frozenset({"x"}), excluded=True), "a is a text outside {'x'}"),
        (TextSet(frozenset("abcdefghij")), "a is in {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', and 2 more}"),
        (TextRange("a", "b"), "a is a text from 'a' to before 'b'"),
        (TextRange("a", excluded=frozenset({"c"})), "a is a text from 'a' except {'c'}"),
        (Flag(value=True), "a is true"),
        (Presence(present=False), "a is missing"),
    ],
)
def test_a_constraint_reads_as_words(constraint, text):
    assert describe("a", constraint) == text


def test_a_box_without_constraints_is_anything():
    assert describe_box(Box()) == "anything"


def test_what_reads_as_a_number_is_one():
    assert read_attributes(" speed=61 , kind=car,empty=") == {"speed": 61.0, "kind": "car", "empty": ""}
    assert read_attributes("") == {}


@pytest.mark.parametrize("text", ["speed", "=3", "a=1,,b=2"])
def test_an_event_that_is_no_pairs_is_refused(text):
    with pytest.raises(SettingError, match="name=value"):
        read_attributes(text)


def test_the_facts_say_which_events_match():
    parsed = parse_filter("speed > 50 AND kind = 'car'")
    facts = filter_facts(parsed, [read_attributes("speed=61,kind=car"), read_attributes("speed=61")])
    assert [each["matches"] for each in facts["events"]] == [True, False]
    assert facts["attributes"] == ["kind", "speed"]


def test_the_command_prints_tables_or_pure_json(capsys):
    arguments = ["filter", "speed > 50 OR kind IS NULL", "--event", "speed=61", "--event", "kind=car"]
    assert run(arguments) == 0
    said = capsys.readouterr().out
    assert "50 < speed" in said
    assert "kind is missing" in said
    assert run([*arguments, "--json"]) == 0
    assert [each["matches"] for each in json.loads(capsys.readouterr().out)["events"]] == [True, False]


def test_a_filter_that_nothing_matches_says_so(capsys):
    assert run(["filter", "speed > 5 AND speed < 3"]) == 0
    assert "nothing can match" in capsys.readouterr().out
