"""Are parents and children chosen as the paper has it, and as ours does?"""

from __future__ import annotations

from betimes.matching.dz.expressions import read_dz
from betimes.peers.parents import Card, best_parent, narrowest


def card(name: str, delay_max: float, *texts: str, depth: float = 1.0) -> Card:
    return Card(name, tuple(map(read_dz, texts or ("0",))), delay_max, depth)


def never() -> float:
    return 0.0


def test_a_subscriber_serves_what_it_covers_and_a_publisher_what_it_meets():
    assert card("a", 3.0, "01").serves(read_dz("011"))
    assert not card("a", 3.0, "011").serves(read_dz("01"))
    assert card("p", 0.0, "011").serves(read_dz("01"))
    assert not card("p", 0.0, "00").serves(read_dz("01"))
    assert card("p", 0.0).publishes
    assert card("a", 2.0, "0", "10").volume == 0.75


def test_the_loosest_of_tighter_bounds_comes_first_and_equal_ones_last():
    cards = [card("equal", 5.0), card("tight", 1.0), card("near", 4.0), card("looser", 6.0)]
    assert best_parent(cards, 5.0, never) == cards[2]
    assert best_parent([cards[0], cards[3]], 5.0, never) == cards[0]
    assert best_parent([cards[3]], 5.0, never) is None


def test_chance_decides_between_equals():
    draws = iter([0.1, 0.9])
    assert best_parent([card("a", 2.0), card("b", 2.0)], 5.0, lambda: next(draws)) == card("b", 2.0)


def test_who_delivers_in_time_comes_first_where_that_counts():
    deep, shallow = card("deep", 4.0, depth=9.0), card("shallow", 2.0, depth=2.0)
    assert best_parent([deep, shallow], 5.0, never, delay_to=lambda name: 1.0) == shallow
    assert best_parent([deep, shallow], 5.0, never, delay_to=lambda name: 4.0) == deep
    assert best_parent([deep, shallow], 5.0, never) == deep


def test_the_narrowest_child_goes_and_of_equals_the_one_in_no_hurry():
    assert narrowest({"a": (0.5, 9.0), "b": (0.25, 1.0)}) == "b"
    assert narrowest({"a": (0.5, 2.0), "b": (0.5, 7.0)}) == "b"
