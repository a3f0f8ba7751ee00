"""Is the newest remembered, and no more than there is room for?"""

from __future__ import annotations

from betimes.model.bounded_map import Lately


def test_the_oldest_is_forgotten_first_and_what_is_noted_again_is_new():
    lately: Lately[str, int] = Lately(2)
    lately.note("a", 1)
    lately.note("b", 2)
    lately.note("a", 3)
    lately.note("c", 4)
    assert "b" not in lately
    assert lately.get("a", 0) == 3
    lately.forget("a")
    assert lately.get("a", 0) == 0
    lately.forget("a")
