"""Sets of destinations by name and by number."""

from __future__ import annotations

import numpy as np
import pytest

from betimes.scheduling import broker
from betimes.scheduling.broker import DestinationSets

NAMES = ("a", "b", "c", "b")  # the last is a pin to b
NUMBERS = {"a": 0, "b": 1, "c": 2}
LEADS = np.array([[True, True, False, True], [False, True, True, False]])  # by link and number
SETS = DestinationSets("a", NAMES, NUMBERS, LEADS)


def test_numbers_have_the_names_of_their_destinations() -> None:
    assert SETS.named(np.array([0, 2])) == {"a", "c"}


def test_a_pin_has_the_name_of_its_home() -> None:
    assert SETS.named(np.array([3])) == SETS.named(np.array([1])) == {"b"}


def test_names_become_numbers_and_names_again() -> None:
    both = frozenset("bc")
    assert SETS.named(SETS.split(both).numbers) == both


def test_a_broker_is_not_one_of_the_others() -> None:
    split = SETS.split(frozenset("abc"))
    assert (split.is_here, split.others, split.numbers.tolist()) == (True, frozenset("bc"), [1, 2])
    assert not SETS.split(frozenset("bc")).is_here
    assert SETS.split(frozenset("a")).others == frozenset()


def test_links_are_those_that_lead_to_any_of_the_others() -> None:
    assert [SETS.split(frozenset(names)).links for names in ("a", "b", "c", "ac")] == [(), (0, 1), (1,), (1,)]


def test_a_set_that_was_met_is_not_made_again() -> None:
    assert SETS.named(np.array([1, 2])) is SETS.named(np.array([1, 2]))
    assert SETS.split(frozenset("bc")) is SETS.split(frozenset("cb"))


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "SETS_MAX", 2)
    sets = DestinationSets("a", NAMES, NUMBERS, LEADS)
    first = sets.named(np.array([0]))
    for number in (1, 2):
        assert sets.named(np.array([number])) == {NAMES[number]}
    assert sets.named(np.array([0])) is not first
    assert sets.named(np.array([0])) == first
    once = sets.split(frozenset("b"))
    for name in "ca":
        sets.split(frozenset(name))
    assert sets.split(frozenset("b")) is not once
