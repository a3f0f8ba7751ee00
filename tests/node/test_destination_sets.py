"""Sets of destinations by name and by number."""

from __future__ import annotations

import numpy as np
import pytest

from betimes.node import destination_sets
from betimes.node.destination_sets import DestinationSets

NAMES = ("a", "b", "c", "b")  # the last is a pin to b
SETS = DestinationSets(NAMES, {"a": 0, "b": 1, "c": 2})


def test_numbers_have_the_names_of_their_destinations() -> None:
    assert SETS.named(np.array([0, 2])) == {"a", "c"}


def test_a_pin_has_the_name_of_its_home() -> None:
    assert SETS.named(np.array([3])) == SETS.named(np.array([1])) == {"b"}


def test_names_become_numbers_and_names_again() -> None:
    both = frozenset("ac")
    assert SETS.named(np.sort(SETS.numbered(both))) == both


def test_a_set_that_was_met_is_not_made_again() -> None:
    assert SETS.named(np.array([1, 2])) is SETS.named(np.array([1, 2]))
    assert SETS.numbered(frozenset("bc")) is SETS.numbered(frozenset("cb"))


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(destination_sets, "SETS_MAX", 2)
    sets = DestinationSets(NAMES, {"a": 0, "b": 1, "c": 2})
    first = sets.named(np.array([0]))
    for number in (1, 2):
        assert sets.named(np.array([number])) == {NAMES[number]}
    assert sets.named(np.array([0])) is not first
    assert sets.named(np.array([0])) == first
