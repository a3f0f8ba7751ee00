"""Is the newest remembered, and no more than there is room for?"""

from __future__ import annotations

from betimes.model.bounded_map import BoundedMap


def test_the_oldest_is_forgotten_first_and_what_is_noted_again_is_new():
    recent: BoundedMap[str, int] = BoundedMap(2)
    recent.note("a", 1)
    recent.note("b", 2)
    recent.note("a", 3)
    recent.note("c", 4)
    assert "b" not in recent
    assert recent.get("a", 0) == 3
    recent.forget("a")
    assert recent.get("a", 0) == 0
    recent.forget("a")
