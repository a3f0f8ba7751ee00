"""Do events that go through an overlay at once come to the same as message by message?"""

from __future__ import annotations

import pytest

from betimes.peers.settings import our_settings, paper_settings
from betimes.simulator.peers.network import PeerNetwork
from betimes.simulator.peers.worlds import GRID, RECT, S2, SPACE, UNIFORM, PeerWorld

PEERS, CYCLES = 40, 30


def trace(settings, workload: str, *, is_one_by_one: bool) -> list[object]:
    """Return all that is seen of peers of which some go without a word, cycle by cycle."""
    world = PeerWorld(workload, UNIFORM, S2, 5)
    newcomers = [*world.publishers(), *(world.subscriber() for _ in range(PEERS))]
    network = PeerNetwork(SPACE, newcomers, settings, 5, is_one_by_one=is_one_by_one)
    last = len(newcomers) - 1
    found: list[object] = []
    for cycle in range(CYCLES):
        if cycle % 3 == 2:
            network.leave(last - cycle)
            network.join(last - cycle, world.subscriber())
        if cycle == CYCLES // 2:
            network.leave(last)
        network.cycle()
        found += [network.publish(world.probe()), network.messages]
        found += [
            (peer.received, peer.unwanted, peer.repeated, peer.claim, peer.card()) for peer in network.peers
        ]
        found += [
            (line.count, line.heard, line.late_since, line.is_late, line.parent)
            for peer in network.peers
            for line in peer.lines.by_dz.values()
        ]
    return found


@pytest.mark.long
@pytest.mark.parametrize("workload", [GRID, RECT])
@pytest.mark.parametrize("settings", [our_settings(4, 0.25), paper_settings(4, 0.25)])
def test_all_at_once_is_what_peers_do_message_by_message(settings, workload):
    fast, plain = (trace(settings, workload, is_one_by_one=each) for each in (False, True))
    assert fast == plain
