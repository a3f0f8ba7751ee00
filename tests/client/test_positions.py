"""Is it known what a subscription has, however its messages overtake each other?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from betimes.client.positions import WINDOW, Positions
from betimes.language.resume_tokens import read_resume_token


def test_who_has_nothing_begins_now():
    assert Positions().tokens() == ["now"]


def test_what_was_taken_is_told_with_its_holes():
    positions = Positions(["b1:10"])
    for number in (11, 14, 12):
        positions.take(f"b1:{number}")
    positions.take("b2:5")
    positions.take("no id")
    positions.take(None)
    assert positions.tokens() == ["b1:10,1-2,4", "b2:0,5"]
    assert "b1:14" in positions
    assert "b1:13" not in positions
    assert "b1:9" not in positions  # it may have come late, and never before
    assert None not in positions


def test_an_answer_raises_the_floor_when_all_that_was_missed_has_come():
    positions = Positions(["b1:10"])
    positions.answered([("outstanding", "2"), ("position", "b1:50"), ("position", "b2:7"), ("x", "y")])
    assert positions.tokens() == ["b1:10"]
    positions.take("b1:60")  # it is live, and not one of those
    positions.take("b1:20")
    assert positions.tokens() == ["b1:10,10,50"]
    positions.take("b2:3")
    assert positions.tokens() == ["b1:50,10", "b2:7"]


def test_an_answer_to_who_missed_nothing_holds_at_once():
    positions = Positions()
    positions.answered([("outstanding", "0"), ("position", "b1:0"), ("position", "garbage")])
    assert positions.tokens() == ["b1:0"]


@given(st.lists(st.integers(1, 3 * WINDOW), max_size=2 * WINDOW))
def test_what_was_taken_is_had_and_little_is_remembered(numbers):
    positions = Positions(["b1:0"])
    for number in numbers:
        positions.take(f"b1:{number}")
    (token,) = positions.tokens()
    _, have = read_resume_token(token)
    assert all(number in have for number in numbers)
    assert len(have.above) <= WINDOW
