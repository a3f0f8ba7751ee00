"""Are the parts of a network named as people name them?"""

from __future__ import annotations

from betimes.model.statistics import LinkStatistics


def test_a_link_is_named_by_its_ends():
    assert LinkStatistics(source="a", target="b").name == "a->b"
