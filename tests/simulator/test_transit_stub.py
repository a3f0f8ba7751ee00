"""Are transit-stub worlds what the paper's generator draws?"""

from __future__ import annotations

import numpy as np

from betimes.simulator.transit_stub import TransitStubWorld, latencies_s

WORLD = TransitStubWorld()


def test_the_papers_world_has_252_nodes_and_every_pair_a_way():
    found = latencies_s(WORLD, 1)
    assert found.shape == (WORLD.nodes, WORLD.nodes) == (252, 252)
    assert np.isfinite(found).all()
    assert np.allclose(found, found.T)
    assert (np.diagonal(found) == 0.0).all()


def test_latencies_keep_the_triangle_inequality():
    found = latencies_s(WORLD, 2)
    via = np.random.default_rng(1).integers(0, 252, (2000, 3))
    left, middle, right = via.T
    assert (found[left, right] <= found[left, middle] + found[middle, right] + 1e-12).all()


def test_a_stub_is_near_and_another_domain_far():
    found = latencies_s(WORLD, 3)
    stub = slice(12, 17)  # the first stub of the first transit node
    assert found[stub, stub][~np.eye(5, dtype=bool)].min() >= 0.001
    assert found[stub, stub].max() <= 4 * 0.003
    assert found[12, 4:8].min() >= 0.003 + 0.020


def test_the_same_seed_draws_the_same_world():
    assert (latencies_s(WORLD, 4) == latencies_s(WORLD, 4)).all()
    assert (latencies_s(WORLD, 4) != latencies_s(WORLD, 5)).any()
