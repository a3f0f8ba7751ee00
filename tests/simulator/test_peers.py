"""Does an overlay come about in which every event reaches everybody who wants it, once and in time?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.node.peer_settings import PeerSettings, our_settings, paper_settings
from betimes.simulator.peer_worlds import GRID, MODERATE, RECT, SPACE, UNIFORM, PeerWorld, wanted
from betimes.simulator.peers import Newcomer, PeerNetwork

EXPRESSIONS = 4


class Trial:
    """A small overlay whose peers come and go."""

    def __init__(self, settings: PeerSettings, seed: int, *, workload: str = GRID, count: int = 40) -> None:
        self.world = PeerWorld(workload, UNIFORM, MODERATE, seed)
        self.newcomers = [*self.world.publishers(), *(self.world.subscriber() for _ in range(count))]
        self.publishers = len(self.newcomers) - count
        self.network = PeerNetwork(SPACE, self.newcomers, settings, seed, loss=0.1)
        self._chance = np.random.default_rng(seed)
        self.settings = settings

    def run(self, cycles: int, *, churn: float = 0.0) -> None:
        """Let time pass; a share of the subscribers goes each cycle, and others come."""
        network = self.network
        for _ in range(cycles):
            for place in range(self.publishers, len(self.newcomers)):
                if self._chance.random() < churn:
                    network.leave(place)
                    self.newcomers[place] = self.world.subscriber()
                    network.join(place, self.newcomers[place])
            network.cycle()
            for peer in network.peers:
                if peer.publishes:
                    peer.published_rate = 512.0 / self.publishers
            network.publish([(cells, 1.0) for cells in self.world.probe()])
            assert max(len(peer.children.by_name) for peer in network.peers) <= self.settings.out_degree_max

    def settle(self, most: int = 120) -> bool:
        """Let time pass, without losses, until everybody is covered; False if that does not come."""
        self.network.loss = 0.0
        for _ in range(most):
            self.run(1)
            if not any(peer.lines.uncovered() or peer.lines.late() for peer in self.network.peers):
                break
        else:
            return False
        self.run(8)  # what was said meanwhile takes effect
        return True

    def cycles_of_links(self) -> list[str]:
        """Return the peers that get something from themselves."""
        network = self.network
        by_name = {peer.name: peer for peer in network.peers}
        found = []
        for peer in network.peers:
            for dz in peer.dz if not peer.publishes else ():
                seen, here = set(), peer
                while not here.publishes:
                    if here.name in seen:
                        found.append(peer.name)
                        break
                    seen.add(here.name)
                    line = next(
                        (
                            each
                            for of, each in here.lines.by_dz.items()
                            if of.bits == dz.bits >> max(dz.length - of.length, 0)
                        ),
                        None,
                    )
                    if line is None or line.parent is None or line.parent not in by_name:
                        break
                    here = by_name[line.parent]
        return found


SETTINGS = {
    "paper": paper_settings(6, 1.0, EXPRESSIONS),
    "ours": our_settings(6, 1.0, EXPRESSIONS),
}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("protocol", SETTINGS)
def test_after_churn_and_losses_every_event_reaches_all_who_want_it_once(protocol, seed):
    trial = Trial(SETTINGS[protocol], seed)
    trial.run(25, churn=0.02)
    assert trial.settle(), "a small overlay finds a place for everybody"
    assert trial.cycles_of_links() == []
    network = trial.network
    repeated = sum(peer.repeated for peer in network.peers)
    events = trial.world.probe()
    got = network.publish([(cells, 1.0) for cells in events])
    assert len({(place, event) for place, event, _ in got}) == len(got)
    counts = np.zeros((len(trial.newcomers), len(events)), dtype=np.int64)
    for place, event, _ in got:
        counts[place, event] += 1
    np.testing.assert_array_equal(counts > 0, wanted(trial.newcomers, events))
    assert sum(peer.repeated for peer in network.peers) == repeated


def test_rectangles_are_covered_by_few_expressions():
    trial = Trial(our_settings(8, 0.3, EXPRESSIONS), 3, workload=RECT, count=60)
    trial.run(40)
    assert all(len(peer.dz) <= EXPRESSIONS for peer in trial.network.peers)
    assert np.mean([not peer.lines.uncovered() for peer in trial.network.peers]) > 0.9


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
        network.publish([(cells, 1.0) for cells in world.probe()])
    got = network.publish([(cells, 1.0) for cells in world.probe()])
    assert len([event for place, event, _ in got if place == 7]) == 512


def test_the_same_seed_makes_the_same_overlay():
    one, other = (Trial(SETTINGS["ours"], 5) for _ in range(2))
    for trial in (one, other):
        trial.run(15, churn=0.05)
    assert one.network.messages == other.network.messages
    assert [peer.dz for peer in one.network.peers] == [peer.dz for peer in other.network.peers]
