"""Is what publishers send measured well enough to be told?"""

from __future__ import annotations

import pytest

from betimes.broker.links.federation import ADVERTS_MAX, PublisherRates


def test_rates_and_sizes_are_those_of_the_last_while():
    adverts = PublisherRates("b1")
    assert adverts.take(0.0) == []
    for _ in range(50):
        adverts.count("bob", "cars/a4/speed", 2.0)
    adverts.count("eve", "trains", 1.0)
    bob, eve = adverts.take(10.0)
    assert (bob.publisher, bob.broker, bob.topic) == ("bob", "b1", "cars")
    assert [bob.rate_per_s, bob.size_kb_mean] == pytest.approx([5.0, 2.0])
    assert eve.rate_per_s == pytest.approx(0.1)


def test_who_falls_silent_fades_and_is_gone():
    adverts = PublisherRates("b1")
    adverts.take(0.0)
    adverts.count("bob", "cars", 1.0)
    rates = []
    for second in range(10, 200, 10):
        found = adverts.take(float(second))
        rates.append(found[0].rate_per_s or 0.0 if found else 0.0)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0.0


def test_only_the_busiest_are_told_of():
    adverts = PublisherRates("b1")
    adverts.take(0.0)
    for number in range(3 * ADVERTS_MAX):
        adverts.count(f"p{number}", "t", 1.0)
    adverts.count("p5", "t", 1.0)
    found = adverts.take(1.0)
    assert len(found) == ADVERTS_MAX
    assert found[0].publisher == "p5"
