"""Checks of an overlay's invariants: places, no cycles, every event once to all its subscribers (002).

A trial lets peers join and leave while messages are lost, then lets the overlay settle, and counts faults.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from betimes.matching.dz.expressions import covers
from betimes.peers.peer import Peer
from betimes.peers.settings import PeerSettings
from betimes.simulator.peers.network import PeerNetwork
from betimes.simulator.peers.worlds import GRID, MODERATE, SPACE, UNIFORM, PeerWorld, wanted

CHURN, LOSS = 0.02, 0.1
ROUGH_CYCLES, SETTLING_CYCLES_MAX = 25, 200
QUIET_CYCLES = 20  # rates are measured over 5, checked every 4, and the consequences measured again


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Counts of what was wrong; all should be zero."""

    over_degree: int = 0  # cycles in which a peer fed more children than it has places
    unsettled: int = 0  # peers that found no parents
    cycles: int = 0  # peers that receive something from themselves
    missing: int = 0  # of events that a subscriber wants
    doubled: int = 0
    repeated: int = 0  # messages that brought an event again, and were discarded
    over_budget: int = 0  # peers that receive more unwanted events than they may

    @property
    def any(self) -> bool:
        """Return whether anything was wrong."""
        return bool(self.violation or self.unsettled or self.missing)

    @property
    def violation(self) -> bool:
        """Return whether an invariant was violated: a peer without a place misses events, others must not."""
        is_missed = self.missing and not self.unsettled
        twice = self.doubled or self.repeated
        return bool(self.over_degree or self.cycles or is_missed or twice or self.over_budget)


class Trial:
    """A small overlay with churn and losses."""

    def __init__(
        self, settings: PeerSettings, seed: int, *, workload: str = GRID, subscribers: int = 40
    ) -> None:
        self.world = PeerWorld(workload, UNIFORM, MODERATE, seed)
        publishers = self.world.publishers()
        self.newcomers = [*publishers, *(self.world.subscriber() for _ in range(subscribers))]
        self._publishers = len(publishers)
        self._settings = settings
        self.network = PeerNetwork(SPACE, self.newcomers, settings, seed, loss=LOSS)
        self._chance = np.random.default_rng(seed)
        self.over_degree = 0

    def run(self, cycles: int, *, churn: float = 0.0) -> None:
        """Let time pass; a share of the subscribers leaves each cycle, and others join."""
        network = self.network
        for _ in range(cycles):
            for place in range(self._publishers, len(self.newcomers)):
                if self._chance.random() < churn:
                    network.leave(place)
                    self.newcomers[place] = self.world.subscriber()
                    network.join(place, self.newcomers[place])
            network.cycle()
            events = self.world.probe()
            for peer in network.peers[: self._publishers]:
                peer.published_rate = len(events) / self._publishers
            network.publish(events)
            fed = max(len(peer.children.by_name) for peer in network.peers)
            self.over_degree += fed > self._settings.out_degree_max

    def settle(self) -> int:
        """Let time pass without losses until all are covered for a while; return how many are not."""
        self.network.loss = 0.0
        quiet = 0
        for _ in range(SETTLING_CYCLES_MAX):
            self.run(1)
            waiting = [peer for peer in self.network.peers if peer.lines.uncovered() or peer.lines.late()]
            quiet = 0 if waiting else quiet + 1
            if quiet == QUIET_CYCLES:  # all messages have taken effect, and no peer had to move
                return 0
        return max(len(waiting), 1)

    def faults(self) -> Faults:
        """Let peers join and leave, let the overlay settle, and count what is wrong."""
        self.run(ROUGH_CYCLES, churn=CHURN)
        unsettled = self.settle()
        peers = self.network.peers
        repeated = sum(peer.repeated for peer in peers)
        received = [(peer.received, peer.unwanted) for peer in peers]
        events = self.world.probe()
        got = self.network.publish(events)
        counts = np.zeros((len(self.newcomers), len(events)), dtype=np.int64)
        for place, event, _ in got:
            counts[place, event] += 1
        in_vain = [peer.unwanted - before for peer, (_, before) in zip(peers, received, strict=True)]
        allowed = self._settings.false_share_max * len(events)
        return Faults(
            over_degree=self.over_degree,
            unsettled=unsettled,
            cycles=len(looped(peers)),
            missing=int((wanted(self.newcomers, events) & (counts == 0)).sum()),
            doubled=int((counts > 1).sum()),
            repeated=sum(peer.repeated for peer in peers) - repeated,
            over_budget=sum(each > 1.1 * allowed for each in in_vain),
        )


def looped(peers: list[Peer]) -> list[str]:
    """Return the peers that receive something from themselves."""
    by_name = {peer.name: peer for peer in peers}
    found = []
    for peer in peers:
        for dz in () if peer.publishes else peer.dz:
            seen: set[str] = set()
            here = peer
            while not here.publishes and here.name not in seen:
                seen.add(here.name)
                line = next((each for wider, each in here.lines.by_dz.items() if covers(wider, dz)), None)
                if line is None or line.parent not in by_name:
                    break
                here = by_name[line.parent]
            else:
                if not here.publishes:
                    found.append(peer.name)
    return found
