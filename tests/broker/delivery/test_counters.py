"""Do counters begin at nothing?"""

from __future__ import annotations

from betimes.broker.delivery.counters import Counters


def test_nothing_is_counted_at_first_but_the_time_of_the_start():
    counters = Counters(started_s=7.0)
    assert counters.started_s == 7.0
    assert not counters.denials.count
    others = set(Counters.__slots__) - {"started_s", "denials"}
    assert not any(getattr(counters, name) for name in others)


def test_what_goes_to_other_brokers_is_counted_for_each():
    counters = Counters()
    counters.carried("b", 1.5)
    counters.carried("b", 0.5)
    counters.carried("c", 1.0)
    assert counters.links == {"b": (2, 2.0), "c": (1, 1.0)}
