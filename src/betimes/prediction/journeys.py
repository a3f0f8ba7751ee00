"""The journey of a publisher's events: the places that they pass, in order.

A network is a list of *places*: brokers, links, and publishers' access links. A place may serve one event
at a time (a station: others wait), may add a delay, and may lose events. The events of one *source* travel
along a tree of places, from the publisher's access link to every broker that may have a subscriber.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Integers, Numbers
from betimes.model.distributions import Constant, NumberDistribution
from betimes.model.errors import BetimesError
from betimes.model.statistics import BrokerStatistics, LinkStatistics, NetworkStatistics, PublisherStatistics
from betimes.model.subscriptions import Subscription
from betimes.model.topology import Link
from betimes.routing.shortest_paths import NO_WAY, shortest_paths

NOWHERE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitedPlace:
    """A broker or a link: its effect on an event."""

    name: str
    broker: BrokerStatistics | None = None
    link: LinkStatistics | None = None

    @property
    def is_station(self) -> bool:
        """Return whether it serves one event at a time."""
        return self.broker is not None or (self.link is not None and self.link.s_per_kb is not None)

    @property
    def reliability(self) -> float:
        """Return the share of events that it does not lose."""
        return 1.0 if self.link is None else self.link.reliability

    @property
    def delay_s(self) -> NumberDistribution:
        """Return the delay of every event there, beside waiting and service."""
        return Constant(0.0) if self.link is None else self.link.delay_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Journey:
    """The tree of places that one source's events travel along; nodes are in order of depth."""

    places: Integers  # by node
    parents: Integers  # by node; NOWHERE: the journey begins there
    # by node: the broker whose subscribers it serves, and those behind; NOWHERE: all events pass
    brokers: Integers
    arriving: Numbers  # by node: the share of events that no link on the route to it loses
    leaving: Numbers  # by node
    levels: tuple[slice, ...]
    node_of_broker: Integers  # NOWHERE: no route leads there

    def path(self, node: int) -> list[int]:
        """Return the nodes from the beginning to this one."""
        found = []
        while node != NOWHERE:
            found.append(node)
            node = int(self.parents[node])
        return found[::-1]


class PlaceLayout:
    """The places of a network, its routes, and the last links to subscribers.

    A last link that only delays is looked up where it is needed; one that sends is a place like the others,
    and its subscriber a stop behind it, numbered after the brokers.
    """

    def __init__(self, statistics: NetworkStatistics) -> None:
        self.brokers = {each.name: number for number, each in enumerate(statistics.brokers)}
        if len(self.brokers) < len(statistics.brokers):
            raise BetimesError("the statistics name one broker twice")
        publishers = {each.name for each in statistics.publishers}
        self.places = [VisitedPlace(name=each.name, broker=each) for each in statistics.brokers]
        for link in statistics.links:  # a link that sends one event at a time has a stop behind it
            if link.s_per_kb is not None and link.target not in self.brokers:
                self.brokers[link.target] = len(self.places)
                self.places.append(VisitedPlace(name=link.target))
        self._stops = frozenset(self.brokers) - {each.name for each in statistics.brokers}
        self._place_of_link: dict[tuple[str, str], int] = {}
        self.last_links: dict[str, LinkStatistics] = {}  # by subscriber
        between: list[LinkStatistics] = []
        for link in statistics.links:
            if link.target not in self.brokers:
                self.last_links[link.target] = link
                continue
            if link.source not in self.brokers and link.source not in publishers:
                raise BetimesError(f"link {link.name}: {link.source} is neither a broker nor a publisher")
            self._place_of_link[link.source, link.target] = len(self.places)
            self.places.append(VisitedPlace(name=link.name, link=link))
            if link.source in self.brokers:
                between.append(link)
        names = tuple(self.brokers)
        self._paths = shortest_paths(names, [_as_routed(link) for link in between], names)

    def broker(self, name: str, subject: str) -> int:
        """Return a broker's number."""
        if name not in self.brokers:
            raise BetimesError(f"{subject}: there is no broker {name}")
        return self.brokers[name]

    def home(self, subscription: Subscription) -> int:
        """Return the broker where a subscriber's routes end, or the stop that is its own."""
        name = subscription.id if subscription.id in self._stops else subscription.home
        return self.broker(name, f"subscriber {subscription.id}")

    def access(self, publisher: PublisherStatistics) -> int:
        """Return the place of a publisher's access link, or NOWHERE."""
        return self._place_of_link.get((publisher.name, publisher.broker), NOWHERE)

    def journey(self, publisher: PublisherStatistics, homes: Iterable[int]) -> Journey:
        """Return the journey of a publisher's events to some brokers."""
        start = self.broker(publisher.broker, f"publisher {publisher.name}")
        tree = _Tree()
        access = self.access(publisher)
        before = NOWHERE if access == NOWHERE else tree.add(access, NOWHERE, NOWHERE)
        nodes = {start: tree.add(start, before, NOWHERE)}
        names = self._paths.nodes
        for home in sorted(homes):
            here = start
            while here != home:
                follower = int(self._paths.next_node[here, home])
                if follower == NO_WAY:
                    break
                if follower not in nodes:
                    link = self._place_of_link[names[here], names[follower]]
                    nodes[follower] = tree.add(follower, tree.add(link, nodes[here], follower), follower)
                here = follower
        return tree.journey(self.places, len(self.brokers), nodes)


class _Tree:
    """A tree of places under construction."""

    def __init__(self) -> None:
        self._nodes: list[tuple[int, int, int]] = []  # place, parent, broker
        self._depths: list[int] = []

    def add(self, place: int, parent: int, broker: int) -> int:
        """Add a node below another and return its number."""
        self._nodes.append((place, parent, broker))
        self._depths.append(0 if parent == NOWHERE else self._depths[parent] + 1)
        return len(self._nodes) - 1

    def journey(self, places: Sequence[VisitedPlace], brokers: int, nodes: dict[int, int]) -> Journey:
        """Return the tree as arrays, by depth."""
        depths = np.array(self._depths)
        order = np.argsort(depths, kind="stable")
        moved = np.empty(len(order) + 1, dtype=np.int64)
        moved[order], moved[NOWHERE] = np.arange(len(order)), NOWHERE
        table = np.array(self._nodes, dtype=np.int64)[order]
        parents = moved[table[:, 1]]
        kept = np.array([places[place].reliability for place in table[:, 0]])
        arriving = np.ones(len(order))
        for node, parent in enumerate(parents.tolist()):
            if parent != NOWHERE:
                arriving[node] = arriving[parent] * kept[parent]
        node_of_broker = np.full(brokers, NOWHERE, dtype=np.int64)
        for broker, node in nodes.items():
            node_of_broker[broker] = moved[node]
        ends = np.searchsorted(depths[order], np.arange(depths.max() + 2))
        return Journey(
            places=table[:, 0].copy(),
            parents=parents,
            brokers=table[:, 2].copy(),
            arriving=arriving,
            leaving=arriving * kept,
            levels=tuple(slice(int(low), int(high)) for low, high in itertools.pairwise(ends)),
            node_of_broker=node_of_broker,
        )


def _as_routed(link: LinkStatistics) -> Link:
    """Return a link with the weight that brokers use for shortest paths."""
    s_per_kb = 0.0 if link.s_per_kb is None else link.s_per_kb.mean
    return Link(source=link.source, target=link.target, s_per_kb_mean=s_per_kb, delay_s=link.delay_s.mean)
