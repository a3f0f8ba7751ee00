"""A filter matches what its text means, and every other text is refused with a position and a hint."""

from __future__ import annotations

import doctest
import inspect
import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.filter_strategies import events, filters
from tests.oracles.three_valued_logic import evaluate

from betimes.language.filters import parse as module
from betimes.language.filters.parse import (
    CACHED_LENGTH_MAX,
    parse_filter,
    parse_fully,
    parse_predicate,
    parse_uncached,
    plain_box,
    read_filter,
)
from betimes.model.errors import TextError
from betimes.model.filters import Box, Filter


@given(filters(), st.lists(events(), min_size=1, max_size=8))
def test_boxes_match_exactly_where_the_predicate_is_true(text, some_events):
    predicate, read = parse_predicate(text), parse_filter(text)
    for event in some_events:
        assert read.matches(event) is (evaluate(predicate, event) is True), (text, event)


@pytest.mark.long
@settings(max_examples=30)
@given(filters(leaves_max=4), events())
def test_a_filter_and_its_negation_never_both_match(text, event):
    assert not (parse_filter(text).matches(event) and parse_filter(f"NOT ({text})").matches(event))


@pytest.mark.long
@settings(max_examples=30)
@given(filters(leaves_max=4), events())
def test_negating_twice_changes_nothing(text, event):
    assert parse_filter(f"NOT (NOT ({text}))").matches(event) is parse_filter(text).matches(event)


@pytest.mark.long
@settings(max_examples=30)
@given(filters(leaves_max=4), filters(leaves_max=4), events())
def test_and_matches_where_both_do_and_or_where_either_does(one, other, event):
    first, second = parse_filter(one).matches(event), parse_filter(other).matches(event)
    assert parse_filter(f"({one}) AND ({other})").matches(event) is (first and second)
    assert parse_filter(f"({one}) OR ({other})").matches(event) is (first or second)


def filter_or_error(text: str) -> Filter | TextError:
    """Return what becomes of a text: nothing but a `TextError` may be raised."""
    try:
        return parse_filter(text)
    except TextError as error:
        return error


@given(st.text(max_size=60))
@example("\x00")
@example("'\\")
@example("`")
@example("/*")
@example("a = '\ud800'")
@example("5" * 400 + " < a")
@example("ALTER TABLE x")
def test_any_text_is_a_filter_or_a_text_error(text):
    outcome = filter_or_error(text)
    if isinstance(outcome, TextError):
        assert outcome.problem
        assert 0 <= outcome.position <= len(outcome.text)


_SCRAPS = [
    "speed",
    "kind",
    "`a_b`",
    "5",
    "-",
    "1e3",
    "'car'",
    "'a%'",
    '"x"',
    "TRUE",
    "NULL",
    "=",
    "<=",
    "<>",
    "<=>",
    ">",
    ">>",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "IN",
    "IS",
    "LIKE",
    "ESCAPE",
    "(",
    ")",
    ",",
    ".",
    ";",
    "*",
    "||",
    "SELECT",
    "FROM",
    "CASE",
    "WHEN",
    "END",
    "DISTINCT",
    "interval",
    "date",
    "f(",
    "[",
    "{",
    "::",
    "--",
    "/*",
    "5L",
    "0x1F",
    "INTERVAL",
    "EXISTS",
    "SYMMETRIC",
    "ANY",
]


@given(st.lists(st.sampled_from(_SCRAPS), max_size=12).map(" ".join))
def test_any_order_of_known_words_is_a_filter_or_a_text_error(text):
    assert isinstance(filter_or_error(text), Filter | TextError)


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("speed > 50 AND kind = 'car'", {"speed": 61.0, "kind": "car"}, {"speed": 50.0, "kind": "car"}),
        ("5 < speed", {"speed": 6.0}, {"speed": 5.0}),
        ("speed = -5", {"speed": -5.0}, {"speed": 5.0}),
        ("speed >= +.5", {"speed": 0.5}, {"speed": 0.4}),
        ("speed < 1.5e3", {"speed": 1499.0}, {"speed": 1500.0}),
        ("speed NOT BETWEEN 1 AND 2", {"speed": 3.0}, {"speed": 1.0}),
        ("kind IN ('car', 'bus')", {"kind": "bus"}, {"kind": "van"}),
        ("kind NOT IN ('car', 'bus')", {"kind": "van"}, {}),
        ("kind LIKE 'ca%'", {"kind": "car"}, {"kind": "bus"}),
        ("kind LIKE 'car'", {"kind": "car"}, {"kind": "cart"}),
        ("kind NOT LIKE 'ca%'", {"kind": "bus"}, {"kind": "car"}),
        (r"kind LIKE '10\%%'", {"kind": "10% off"}, {"kind": "100"}),
        ("kind LIKE '10/%%' ESCAPE '/'", {"kind": "10% off"}, {"kind": "100"}),
        (r"kind = 'it\'s'", {"kind": "it's"}, {"kind": "its"}),
        ("kind = 'it''s'", {"kind": "it's"}, {"kind": "its"}),
        ('kind = "car"', {"kind": "car"}, {"kind": '"car"'}),
        (r"kind = r'a\n'", {"kind": r"a\n"}, {"kind": "a\n"}),
        ("`place name` = 'x'", {"place name": "x"}, {"place": "x"}),
        ("`and` = 5", {"and": 5.0}, {"AND": 5.0}),
        ("date = 5 AND left = 6", {"date": 5.0, "left": 6.0}, {}),
        ("größe > 5", {"größe": 6.0}, {"grosse": 6.0}),
        ("open", {"open": True}, {"open": False}),
        ("NOT open", {"open": False}, {}),
        ("!open", {"open": "false"}, {"open": "no"}),
        ("open < TRUE", {"open": False}, {"open": True}),
        ("open IS NOT TRUE", {}, {"open": True}),
        ("speed IS NULL", {"speed": None}, {"speed": 0.0}),
        ("NOT speed IS NULL", {"speed": 0.0}, {}),
        ("speed <=> NULL", {}, {"speed": 0.0}),
        ("NOT speed <=> 5", {}, {"speed": 5.0}),
        ("((speed)) = (5)", {"speed": 5.0}, {"speed": 6.0}),
        ("3 BETWEEN low AND high", {"low": 1.0, "high": 5.0}, {"low": 4.0, "high": 5.0}),
        ("5 IN (low, high)", {"low": 1.0, "high": 5.0}, {"low": 1.0}),
        ("speed > 5 OR kind = 'car' AND open", {"speed": 6.0}, {"kind": "car"}),
        ("speed = '5'", {"speed": 5.0}, {"speed": "5.0"}),
        ("speed = 5", {"speed": "5.0"}, {"speed": "five"}),
        ("kind < '5'", {"kind": "10"}, {"kind": 10.0}),
        ("1 = 1 AND 'a' < 'b' AND 5 = '5'", {}, None),
    ],
)
def test_a_text_matches_what_it_says(text, matching, other):
    read = parse_filter(text)
    assert read.matches(matching)
    assert other is None or not read.matches(other)


@pytest.mark.parametrize(
    "text", ["x = NULL", "x <> NULL", "x NOT IN (1, NULL)", "NOT x = NULL", "NULL", "x > 5 AND x < 3"]
)
def test_what_can_never_be_true_has_no_box(text):
    assert parse_filter(text).boxes == ()


@pytest.mark.parametrize("text", ["TRUE", "1 = 1", "x > 5 OR TRUE", "NOT FALSE", "NULL IS NULL"])
def test_what_is_always_true_is_one_box_without_constraints(text):
    assert parse_filter(text).boxes == (Box(),)


def test_attribute_names_keep_their_capitals():
    assert parse_filter("Speed > 5").matches({"Speed": 6.0})
    assert not parse_filter("Speed > 5").matches({"speed": 6.0})


def test_a_filter_keeps_its_text():
    assert parse_filter(" speed > 5 ").text == " speed > 5 "


def test_all_attributes_are_named_even_where_they_do_not_matter():
    assert read_filter("TRUE OR speed > 5 AND kind = NULL").attributes == {"speed", "kind"}


@pytest.mark.parametrize(
    ("text", "place", "problem", "hint"),
    [
        ("", 0, "empty", "TRUE"),
        ("   ", 0, "empty", "TRUE"),
        ("speed >> 5", 7, "not `>`", "did you mean >?"),
        ("speed > ", 8, "the text ends", "value"),
        ("speed = = 5", 8, "not `=`", "did you mean =?"),
        ("speed =< 5", 7, "not `<`", "did you mean <=?"),
        ("speed => 5", 6, "`=>`", "did you mean >=?"),
        ("kind = 'car", 7, "not closed", "'"),
        ("kind = 'it's'", 12, "not closed", "'it''s'"),
        ("speed > 5 adn kind = 'car'", 10, "not `adn`", "AND"),
        ("kind LKIE 'c%'", 5, "not `LKIE`", "LIKE"),
        ("kind = car", 7, "with a value only", "'car'"),
        ("upper(kind) = 'CAR'", 0, "functions", "attribute itself"),
        ("speed + 1 > 5", 6, "arithmetic", "speed > 5"),
        ("speed > 5 - 1", 10, "arithmetic", ""),
        ("-speed > 5", 1, "arithmetic", ""),
        ("speed IN (SELECT 1)", 10, "subqueries", "IN ("),
        ("speed > 5; DROP TABLE x", 9, "one condition", ";"),
        ("speed > 5 -- fast", 10, "comment", ""),
        ("speed > 5 /* fast", 10, "not closed", "*/"),
        ("kind LIKE '%car'", 10, "before its end", r"\%"),
        ("kind LIKE 'c_r%'", 10, "before its end", r"\_"),
        (r"kind LIKE 'c\\ar'", 10, "escape", "double"),
        ("kind LIKE 'a' ESCAPE 'ab'", 21, "one letter", ""),
        ("kind RLIKE 'c.*'", 5, "pattern", "LIKE 'prefix%'"),
        ("kind IN ()", 9, "not `)`", ""),
        ("kind IN 'car'", 8, "a list", "IN ("),
        ("kind IN ('car' 'bus')", 15, "side by side", "comma"),
        ("speed IN (1 2)", 12, "comma", ""),
        ("speed IN (1, 2", 9, "not closed", ")"),
        ("(speed > 5", 0, "not closed", ")"),
        ("speed > 5)", 9, "no (", ""),
        ("speed < 3 < 4", 10, "cannot follow", "BETWEEN"),
        ("(speed > 3) = TRUE", 1, "cannot be compared", ""),
        ("speed BETWEEN 3 OR 5", 6, "no AND", "BETWEEN 3 AND 5"),
        ("speed IS 5", 9, "NULL", "="),
        ("speed NOT 5", 10, "IN, LIKE or BETWEEN", ""),
        ("speed", None, "", ""),
        ("speed AND 5", 10, "a value alone", ""),
        ("engine.speed > 5", 6, "no parts", "backticks"),
        ("speed > 5s", 8, "not a number", "digits"),
        ("speed > 5e", 8, "not a number", "digits"),
        ("speed > 1e999", 8, "too large", ""),
        ("speed > 0x1F", 8, "decimal", ""),
        ("speed > ‘5’", 8, "`‘5’`", "straight quotes"),
        ("1st > 5", 0, "`1st`", "backticks"),
        ("`` > 5", 0, "empty", ""),
        ("speed && open", 6, "`&&`", "AND"),
        ("speed > 5, open", 9, "comma", "AND"),
        ("WHERE speed > 5", 0, "one condition", "WHERE"),
        ("speed ESCAPE 'a'", 6, "ESCAPE", ""),
        ("speed > 5\nAND kind >> 'a'", 20, "not `>`", "did you mean >?"),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_at_its_place_with_a_hint(text, place, problem, hint):
    if place is None:  # the one that is right
        parse_filter(text)
        return
    with pytest.raises(TextError) as caught:
        parse_filter(text)
    assert caught.value.position == place
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_deep_nesting_is_refused_and_not_a_crash():
    for text in ("(" * 5000 + "a", "NOT " * 2000 + "a", "NOT (" * 900 + "a" + ")" * 900):
        with pytest.raises(TextError, match="inside each other"):
            parse_filter(text)


FRAMES_MAX = 250  # Python allows 1,000


def test_the_deepest_nesting_allowed_is_read_with_few_stack_frames():
    frames, limit = len(inspect.stack()), sys.getrecursionlimit()
    sys.setrecursionlimit(frames + FRAMES_MAX)
    try:
        assert parse_filter("(" * 32 + "a" + ")" * 32).matches({"a": True})
        assert parse_filter("NOT (" * 16 + "a" + ")" * 16).matches({"a": True})
        assert parse_filter("(a = 1 OR b = 1 AND " * 32 + "a" + ")" * 32).matches({"a": 1.0})
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.long
def test_long_chains_are_no_nesting():
    assert parse_filter(" AND ".join(["speed > 5"] * 700)).boxes == parse_filter("speed > 5").boxes
    assert parse_filter(" OR ".join(f"kind = 'k{number}'" for number in range(500))).matches({"kind": "k499"})


def test_a_text_too_long_is_refused_by_its_length():
    with pytest.raises(TextError, match="at most 10,000 letters"):
        parse_filter("speed > 5 AND " * 2_000 + "TRUE")


_GREEDY = (
    " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(200)),
    " AND ".join(f"a{n} <> 1" for n in range(500)),
    " OR ".join(f"a = {n}" for n in range(900)),
    " OR ".join(f"a{n} = 1" for n in range(700)),
    "NOT (" + " OR ".join(f"(a{n} = 1 AND b{n} > 2)" for n in range(200)) + ")",
    " AND ".join("(" + " OR ".join(f"a{m} > {n} AND b{m} < {n}" for n in range(25)) + ")" for m in range(15)),
    "a NOT IN (" + ", ".join(str(n) for n in range(1500)) + ")",
)


CALLS_MAX = 5_000_000  # to read the longest of them takes two; all boxes of any would take far more


@pytest.mark.long
@pytest.mark.parametrize("text", _GREEDY, ids=range(len(_GREEDY)))
def test_too_many_boxes_are_refused_before_the_work_is_done(text):
    calls = 0

    def note(_frame: object, event: str, _what: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        with pytest.raises(TextError, match="more than 256 boxes"):
            parse_filter(text)
    finally:
        sys.setprofile(None)
    assert calls < CALLS_MAX


def test_the_bound_on_boxes_can_be_set():
    text = "a = 1 OR b = 1 OR c = 1"
    assert len(parse_filter(text, boxes_max=3).boxes) == 3
    with pytest.raises(TextError, match="more than 2 boxes"):
        parse_filter(text, boxes_max=2)


REFERENCE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "filters.md").read_text()


def test_every_filter_in_the_reference_is_read():
    (block,) = re.findall(r"^```sql\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        assert parse_filter(line).boxes


@pytest.mark.parametrize(
    ("text", "event", "outcome"),
    re.findall(r"^\| `([^|]+)` \| `({.*?})` \| (\w+) \|$", REFERENCE, re.MULTILINE),
)
def test_every_outcome_in_the_reference_is_what_comes_out(text, event, outcome):
    expected = {"true": True, "false": False, "unknown": None}[outcome]
    assert evaluate(parse_predicate(text), json.loads(event)) is expected
    assert parse_filter(text).matches(json.loads(event)) is (expected is True)


def test_the_mistake_in_the_reference_is_shown_as_there():
    wrong, shown = re.findall(r"^```text\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL)
    with pytest.raises(TextError) as caught:
        parse_filter(wrong.strip())
    assert str(caught.value).strip() == shown.strip()


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(module).failed == 0


def test_a_short_text_is_read_once_and_a_mistake_is_told_each_time():
    assert read_filter("cached = 1") is read_filter("cached = 1")
    long = "a IN (" + ", ".join(map(str, range(200))) + ")"
    assert len(long) > CACHED_LENGTH_MAX
    assert read_filter(long) == read_filter(long)
    assert read_filter(long) is not read_filter(long)
    for _ in range(2):
        with pytest.raises(TextError):
            read_filter("cached =")


plain_names = st.sampled_from(("speed", "kind", "Kind", "a_1", "date", "select", "between", "NOT", "x"))
plain_numbers = st.sampled_from(
    ("1", "-2.5", "0", "-0.0", "-0", "1e3", "2E-2", "007", "12.50", "1e400", "-1e400", ".5", "5.", "5L")
)
plain_texts = st.text('aé0 5.-"\\%_', max_size=4) | st.sampled_from(("car", "5", "true", "nan", "it''s", ""))
plain_comparisons = st.builds(
    "{}{}{}{}{}".format,
    plain_names,
    st.sampled_from(("", " ")),
    st.sampled_from(("<", "<=", ">", ">=", "=", "==", "!=")),
    st.sampled_from(("", " ", "\n")),
    plain_numbers | plain_texts.map(lambda text: f"'{text}'"),
)
plain_ranges = st.builds(
    "{} {} {} AND {}".format,
    plain_names,
    st.sampled_from(("BETWEEN", "between")),
    plain_numbers,
    plain_numbers,
)
other_terms = st.sampled_from(
    ("x IS NULL", "kind IN ('a', 'b')", "NOT x > 1", "(x > 1)", "TRUE", "kind LIKE 'a%'")
)
joined_terms = st.lists(plain_comparisons | plain_ranges | other_terms, min_size=1, max_size=4).flatmap(
    lambda terms: st.sampled_from((" AND ", " and ", " OR ", " AND\t", "AND ")).map(
        lambda word: word.join(terms)
    )
)


@given(joined_terms | st.text("ab<>=' 1.-ANDandBETWEN", max_size=20))
def test_the_shortcut_for_plain_texts_equals_the_parser(text):
    try:
        fully = parse_fully(text)
    except TextError as error:
        assert plain_box(text) is None
        with pytest.raises(TextError, match=re.escape(str(error))):
            parse_uncached(text)
        return
    assert parse_uncached(text) == fully


@pytest.mark.parametrize(
    "text",
    [
        "speed BETWEEN 10 AND 20.5 AND kind = 'car' AND lane <= -3",
        "x >= 1 AND x < 2 AND y > 1e-3",
        " x = 5 ",
    ],
)
def test_plain_texts_take_the_shortcut(text):
    assert plain_box(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x > 1 OR y > 1",
        "select > 1",
        "x > 2 AND x < 1",
        "x > 1 AND",
        "k = '5'",
        "x > 1e400",
        "x > -1e400",
    ],
)
def test_other_texts_do_not_take_the_shortcut(text):
    assert plain_box(text) is None


def test_a_refusal_is_remembered_and_says_the_same_again():
    text = " AND ".join(f"(a{number} = 1 OR b{number} = 2)" for number in range(9))
    told = []
    for _ in range(2):
        with pytest.raises(TextError) as caught:
            module.read_filter(text)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert any(known == text for known, _ in module._refused)
