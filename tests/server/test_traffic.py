"""Do counters begin at nothing?"""

from __future__ import annotations

from betimes.server.traffic import Traffic


def test_nothing_is_counted_at_first_but_the_time_of_the_start():
    traffic = Traffic(started_s=7.0)
    assert traffic.started_s == 7.0
    assert sum(getattr(traffic, name) for name in Traffic.__slots__ if name != "started_s") == 0
