"""The latency between any two nodes of an internet: transit-stub worlds (004, section 6).

There are a few transit domains, each of some transit nodes; each transit node has some stub domains of some
nodes. Domains are trees with chords, as GT-ITM draws them, and a message takes the shortest route.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from betimes.model.distributions import NumberDistribution, Uniform
from betimes.simulator.chance import draw_numbers, stream

CHORDS = 0.5  # of all pairs in a domain, the share that is linked besides the tree


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitStubWorld:
    """A recipe with the numbers of 004; a seed makes it an internet."""

    domains: int = 3
    transit_nodes: int = 4  # of a domain
    stubs: int = 4  # at a transit node
    stub_nodes: int = 5
    between_domains_s: NumberDistribution = field(default_factory=lambda: Uniform(0.020, 0.040))
    in_transit_s: NumberDistribution = field(default_factory=lambda: Uniform(0.010, 0.020))
    to_stub_s: NumberDistribution = field(default_factory=lambda: Uniform(0.003, 0.008))
    in_stub_s: NumberDistribution = field(default_factory=lambda: Uniform(0.001, 0.003))

    @property
    def nodes(self) -> int:
        """Return how many nodes there are."""
        return self.domains * self.transit_nodes * (1 + self.stubs * self.stub_nodes)


def latencies_s(world: TransitStubWorld, seed: int) -> NDArray[np.float64]:
    """Return the one-way latency between any two nodes of the world of a seed."""
    chance = stream(seed, "transit-stub")
    wires = _Wires(chance)
    fresh = iter(range(world.nodes))
    domains = [[next(fresh) for _ in range(world.transit_nodes)] for _ in range(world.domains)]
    for number, domain in enumerate(domains):
        wires.mesh(domain, world.in_transit_s)
        for other in domains[:number]:
            wires.join(int(chance.choice(domain)), int(chance.choice(other)), world.between_domains_s)
    for transit_node in [node for domain in domains for node in domain]:
        for _ in range(world.stubs):
            stub = [next(fresh) for _ in range(world.stub_nodes)]
            wires.mesh(stub, world.in_stub_s)
            wires.join(int(chance.choice(stub)), transit_node, world.to_stub_s)
    return wires.shortest_s(world.nodes)


class _Wires:
    def __init__(self, chance: np.random.Generator) -> None:
        self._chance = chance
        self._ends: list[tuple[int, int]] = []
        self._latency_s: list[float] = []

    def join(self, left: int, right: int, latency_s: NumberDistribution) -> None:
        """Link two nodes."""
        self._ends.append((left, right))
        self._latency_s.append(float(draw_numbers(self._chance, latency_s, 1)[0]))

    def mesh(self, nodes: list[int], latency_s: NumberDistribution) -> None:
        """Link nodes to a random tree, and some pairs besides."""
        for number, node in enumerate(nodes[1:], 1):
            parent = int(self._chance.integers(number))
            self.join(node, nodes[parent], latency_s)
            for other in range(number):
                if other != parent and self._chance.random() < CHORDS / len(nodes):
                    self.join(node, nodes[other], latency_s)

    def shortest_s(self, count: int) -> NDArray[np.float64]:
        """Return the least latency between any two of so many nodes."""
        rows, columns = np.array(self._ends).T
        wires = coo_array((self._latency_s, (rows, columns)), shape=(count, count)).tocsr()
        found: NDArray[np.float64] = shortest_path(wires, method="D", directed=False)
        return found
