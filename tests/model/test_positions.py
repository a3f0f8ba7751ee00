"""What does somebody have?"""

from __future__ import annotations

from betimes.model.positions import NOTHING, Have


def test_all_up_to_the_floor_is_had_and_some_above_it():
    have = Have(floor=10, above=frozenset([12, 15]))
    assert [number for number in range(8, 17) if number in have] == [8, 9, 10, 12, 15]
    assert have.highest == 15
    assert Have(floor=10).highest == 10
    assert 1 not in NOTHING
