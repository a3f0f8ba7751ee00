"""Do counters begin at nothing?"""

from __future__ import annotations

from betimes.broker.delivery.counters import Traffic


def test_nothing_is_counted_at_first_but_the_time_of_the_start():
    traffic = Traffic(started_s=7.0)
    assert traffic.started_s == 7.0
    assert not any(getattr(traffic, name) for name in Traffic.__slots__ if name != "started_s")


def test_what_goes_to_other_brokers_is_counted_for_each():
    traffic = Traffic()
    traffic.carried("b", 1.5)
    traffic.carried("b", 0.5)
    traffic.carried("c", 1.0)
    assert traffic.links == {"b": (2, 2.0), "c": (1, 1.0)}
