"""Do counters begin at nothing?"""

from __future__ import annotations

from betimes.server.traffic import Traffic


def test_nothing_is_counted_at_first():
    traffic = Traffic()
    assert {name: getattr(traffic, name) for name in Traffic.__slots__} == dict.fromkeys(Traffic.__slots__, 0)
