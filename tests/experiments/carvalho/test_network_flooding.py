"""Does who knows everything take the shortest way with room, and is it charged for knowing?"""

from __future__ import annotations

import pytest
from tests.reservations.overlay.small_overlays import small_overlay

from betimes.experiments.carvalho.network import FNS, FNS_EVERY, FloodingNetwork

SLOTS = 2


def network():
    overlay = small_overlay(31, count=12)
    return overlay, FloodingNetwork(overlay, SLOTS)


def test_the_first_way_is_the_shortest_and_later_ones_are_not_shorter():
    overlay, found = network()
    latencies = []
    while (answer := found.ask("n1", "n2", FNS)) is not None:
        latencies.append(answer[0])
    assert latencies[0] >= overlay.latency_s("n1", "n2")
    assert latencies == sorted(latencies)
    links_out = [ends for ends in overlay.links() if ends[0] == "n1"]
    links_in = [ends for ends in overlay.links() if ends[1] == "n2"]
    assert len(latencies) == SLOTS * min(len(links_out), len(links_in))
    assert found.utilisation <= 1.0


def test_state_is_charged_when_links_fill_and_requests_every_time():
    overlay, found = network()
    links = len(overlay.links())
    first, second = found.ask("n1", "n2", FNS), found.ask("n1", "n2", FNS)
    assert first is not None
    assert second is not None
    hops = first[1] // 2
    assert second[1] - 2 * hops == hops * 11  # the same links again: each of them is full now
    _, other = network()
    every, flooded = other.ask("n1", "n2", FNS_EVERY), other.ask("n1", "n2", "fr")
    assert every is not None
    assert flooded is not None
    assert every[1] == hops * (2 + links - 11)
    assert flooded[1] == 2 * hops + 2 * (links - 11)


def test_a_subscriber_at_the_publishers_node_needs_no_link():
    _, found = network()
    assert found.ask("n1", "n1", FNS) == (pytest.approx(0.0), 0)
