"""Does an overlay come about in which every event reaches everybody who wants it, once and in time?"""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.peer_trials import Trial

from betimes.peers.settings import our_settings
from betimes.simulator.peers.network import Newcomer, PeerNetwork
from betimes.simulator.peers.worlds import GRID, MODERATE, RECT, SPACE, UNIFORM, PeerWorld

EXPRESSIONS = 4


@pytest.mark.long
def test_rectangles_are_covered_by_few_expressions():
    trial = Trial(our_settings(8, 0.3, EXPRESSIONS), 3, workload=RECT, subscribers=60)
    trial.run(40)
    assert all(len(peer.dz) <= EXPRESSIONS for peer in trial.network.peers)
    assert np.mean([not peer.lines.uncovered() for peer in trial.network.peers]) > 0.9


@pytest.mark.long
def test_a_publisher_that_comes_late_is_heard():
    world = PeerWorld(GRID, UNIFORM, MODERATE, 1)
    publishers = world.publishers()
    newcomers = [
        Newcomer(delay_max=8.0, boxes=(((0, 127), (0, 127)),)),
        *(world.subscriber() for _ in range(30)),
    ]
    network = PeerNetwork(
        SPACE,
        [*publishers[:7], *newcomers, Newcomer(delay_max=9.0, boxes=newcomers[0].boxes)],
        our_settings(6, 1.0),
        1,
    )
    last = len(network.peers) - 1
    for _ in range(40):
        network.cycle()
    network.leave(last)
    network.join(last, publishers[7])
    for _ in range(40):
        network.cycle()
        network.publish(world.probe())
    got = network.publish(world.probe())
    assert len([event for place, event, _ in got if place == 7]) == 512


@pytest.mark.long
def test_the_same_seed_makes_the_same_overlay():
    one, other = (Trial(our_settings(6, 1.0, EXPRESSIONS), 5) for _ in range(2))
    for trial in (one, other):
        trial.run(15, churn=0.05)
    assert one.network.messages == other.network.messages
    assert [peer.dz for peer in one.network.peers] == [peer.dz for peer in other.network.peers]
