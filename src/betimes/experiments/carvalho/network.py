"""The simulation of Carvalho et al. (004, section 6), and one run of it.

There is a transit-stub internet; on it an overlay that its nodes build themselves, by joining one after the
other. A link of the overlay has eight slots in each direction, and a subscription takes one (12.5 per cent).
30 per cent of the nodes have a subscriber; each type has one publisher at a random node. Subscribers ask for
types in random order, one after the other, until a hundred are refused in a row or every subscriber has asked
for every type.

Messages are counted individually: questions and offers, reservations and their answers, searches with their
dead ends, all that an accepted request caused. Advertisements and refreshes are not counted.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from betimes.experiments.figure import FigurePlan, Row
from betimes.model.errors import SettingError
from betimes.reservations.outcomes import Accepted
from betimes.reservations.overlay.dht import DhtSettings
from betimes.reservations.overlay_node import ReservationOverlaySettings
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import Manner
from betimes.simulator.chance import stream
from betimes.simulator.reservation_overlay import ReservationOverlay
from betimes.simulator.transit_stub import TransitStubWorld, latencies_s

FNS, FNS_EVERY = "fns", "fns-every"


class FloodingNetwork:
    """The alternatives with complete knowledge (004, sections 4.2 and 6.3), on the links of an overlay.

    *Flooding network state* (FNS): every node knows every link, and takes the shortest route over links that
    have room. For that, updates are flooded: here only when a link fills, once to every node over a spanning
    tree; or, as in QoSPF, every change over every link. *Flooding requests* (FR): no node knows any link;
    each request goes over every link and back (the second wave prunes), and finds the same route.
    """

    def __init__(self, overlay: ReservationOverlay, slots: int) -> None:
        self._number = {name: number for number, name in enumerate(overlay.names)}
        links = overlay.links()
        self._slots = slots
        self._used: dict[tuple[int, int], int] = {}
        self._links = len(links)
        ends = [(self._number[source], self._number[target]) for source, target in links]
        rows, columns = np.array(ends).T
        weights = [overlay.latency_s(source, target) for source, target in links]
        nodes = len(overlay.names)
        self._graph = csr_array((weights, (rows, columns)), shape=(nodes, nodes))
        # The position of a link's weight: a link that is full becomes infinitely long.
        self._at = {
            (row, int(self._graph.indices[at])): at
            for row in range(nodes)
            for at in range(self._graph.indptr[row], self._graph.indptr[row + 1])
        }
        self._tree_messages = nodes - 1
        # Each node forwards it over all its links but the one it came by.
        self._flood_messages = self._links - (nodes - 1)

    @property
    def utilisation(self) -> float:
        """Return the share of all slots that is taken."""
        return sum(self._used.values()) / (self._slots * self._links)

    def ask(self, publisher: str, subscriber: str, scheme: str) -> tuple[float, int] | None:
        """Reserve the shortest route with room; return its latency and the messages, or None."""
        source, target = self._number[publisher], self._number[subscriber]
        latency_s, before = dijkstra(self._graph, indices=source, return_predecessors=True)
        if not np.isfinite(latency_s[target]):
            return None
        hops, filled, node = 0, 0, target
        while node != source:
            ends = (int(before[node]), node)
            self._used[ends] = self._used.get(ends, 0) + 1
            if self._used[ends] == self._slots:
                self._graph.data[self._at[ends]] = np.inf
                filled += 1
            hops, node = hops + 1, ends[0]
        return float(latency_s[target]), 2 * hops + self._signalling(scheme, hops, filled)

    def _signalling(self, scheme: str, hops: int, filled: int) -> int:
        if scheme == FNS:
            return filled * self._tree_messages
        if scheme == FNS_EVERY:
            return hops * self._flood_messages
        return 2 * self._flood_messages


SLOTS = 8  # of a link, in each direction
SLOT_BYTES_PER_S = 1_000
SUBSCRIBING = 0.3  # of all nodes
REFUSED_IN_A_ROW_MAX = 100
BEATS = 12  # after the last node has joined, until tables have settled
TYPES = 20  # where a figure does not vary them
KEPT = 8  # overlays
EQUAL_LOAD = 100  # accepted subscriptions at which latencies are compared
INDIQOS, DIRECT, COORD, FR = "indiqos", "direct", "coord", "fr"
MANNERS = {INDIQOS: Manner.RENDEZVOUS, DIRECT: Manner.DIRECT, COORD: Manner.COORDINATES}
FLOODING = (FNS, FNS_EVERY, FR)
COUNTED = "messages per accepted request"
WORLDS = {
    252: TransitStubWorld(),
    1000: TransitStubWorld(domains=4, transit_nodes=5, stubs=7, stub_nodes=7),
    4000: TransitStubWorld(domains=5, transit_nodes=8, stubs=9, stub_nodes=11),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTally:
    """The counts of requests that were made one after the other."""

    accepted: int
    refused: int
    latency_s: float  # mean over the accepted
    messages: float  # likewise


def settled_overlay(nodes: int, seed: int) -> ReservationOverlay:
    """Return the overlay that so many nodes build; reservations do not lapse, because no node crashes.

    Many runs begin with the same overlay: a process keeps the last few as they were, and returns copies.
    """
    found = pickle.loads(_settled(nodes, seed))
    assert isinstance(found, ReservationOverlay)
    return found


@lru_cache(maxsize=KEPT)
def _settled(nodes: int, seed: int) -> bytes:
    if nodes not in WORLDS:
        raise SettingError("nodes", nodes, "no such world", f"one of {', '.join(map(str, WORLDS))}")
    settings = ReservationOverlaySettings(
        dht=DhtSettings(beat_every_s=30.0, lost_after_s=45.0),
        refresh_every_s=float("inf"),
        lapse_after_s=float("inf"),
    )
    overlay = ReservationOverlay(
        latencies_s(WORLDS[nodes], seed), seed, settings=settings, link_bytes_per_s=SLOTS * SLOT_BYTES_PER_S
    )
    overlay.grow(BEATS)
    return pickle.dumps(overlay)


def publishers(names: Sequence[str], types: int, seed: int) -> list[str]:
    """Return the node where each type is published."""
    return [str(name) for name in stream(seed, "publishers").choice(np.array(names), types)]


def requests(names: Sequence[str], types: int, seed: int) -> list[tuple[str, int]]:
    """Return the requests in order: node and type."""
    chance = stream(seed, "requests")
    count = round(SUBSCRIBING * len(names))
    subscribers = chance.choice(np.array(names), count, replace=False)
    pairs = [(str(name), number) for name in subscribers for number in range(types)]
    return [pairs[at] for at in chance.permutation(len(pairs))]


def ask_one_by_one(
    asked: Sequence[tuple[str, int]], ask: Callable[[str, int], tuple[float, int] | None], accepted_max: int
) -> RequestTally:
    """Ask until no request is accepted any more; `ask` returns latency and messages of an accepted one."""
    latencies, messages = [], []
    refused, in_a_row = 0, 0
    for name, number in asked:
        found = ask(name, number)
        if found is None:
            refused, in_a_row = refused + 1, in_a_row + 1
        else:
            latencies.append(found[0])
            messages.append(found[1])
            in_a_row = 0
        if in_a_row >= REFUSED_IN_A_ROW_MAX or len(latencies) == accepted_max:
            break
    return RequestTally(
        accepted=len(latencies),
        refused=refused,
        latency_s=sum(latencies) / len(latencies) if latencies else float("nan"),
        messages=sum(messages) / len(messages) if messages else float("nan"),
    )


class Requests:
    """Requests to an overlay by one scheme; all of them can be released."""

    def __init__(self, overlay: ReservationOverlay, *, scheme: str, replicas: int, is_shared: bool) -> None:
        self._overlay = overlay
        self._scheme = scheme
        self._replicas = replicas
        self._is_shared = is_shared
        self._held: list[tuple[str, str]] = []

    def advertise(self, homes: Sequence[str]) -> None:
        """Advertise every type."""
        for number, home in enumerate(homes):
            self._overlay.advertise(home, f"type {number}", SLOT_BYTES_PER_S, self._replicas)
            self._overlay.settle()

    def ask(self, name: str, number: int) -> tuple[float, int] | None:
        """Ask for one type at one node; return latency and messages, or None if it was refused."""
        overlay = self._overlay
        overlay.news.clear()
        overlay.sent.clear()
        request = ReservationRequest(
            subscription=f"{number} at {name}, {self._scheme}",
            event_type=f"type {number}",
            replicas=self._replicas,
            manner=MANNERS[self._scheme],
            is_shared=self._is_shared,
        )
        overlay.subscribe(name, request)
        overlay.settle()
        (news,) = overlay.news
        if not isinstance(news, Accepted):
            return None
        self._held.append((name, request.subscription))
        return news.latency_s, overlay.sent.total()

    def give_back(self) -> None:
        """Release everything."""
        for name, subscription in self._held:
            self._overlay.unsubscribe(name, subscription)
            self._overlay.settle()
        self._held.clear()


def utilisation(overlay: ReservationOverlay) -> float:
    """Return the share of all links' bandwidth that is reserved, in per cent."""
    links = overlay.links()
    promised = sum(overlay.nodes[source].outward.promised(target) for source, target in links)
    return 100.0 * promised / (SLOTS * SLOT_BYTES_PER_S * len(links))


def run_row(row: Row) -> dict[str, Any]:
    """Run one row (scheme, replicas, types, shared, accepted_max, nodes, seed) and return its measures."""
    seed, types, scheme = int(row["seed"]), int(row["types"]), str(row["scheme"])
    overlay = settled_overlay(int(row["nodes"]), seed)
    homes = publishers(overlay.names, types, seed)
    wanted = requests(overlay.names, types, seed)
    if scheme in FLOODING:
        network = FloodingNetwork(overlay, SLOTS)
        asked = ask_one_by_one(
            wanted, lambda name, number: network.ask(homes[number], name, scheme), int(row["accepted_max"])
        )
        used = 100.0 * network.utilisation
    else:
        asking = Requests(
            overlay, scheme=scheme, replicas=int(row["replicas"]), is_shared=bool(row["shared"])
        )
        asking.advertise(homes)
        asked = ask_one_by_one(wanted, asking.ask, int(row["accepted_max"]))
        used = utilisation(overlay)
    return {
        "accepted": asked.accepted,
        "refused": asked.refused,
        "latency_ms": 1000.0 * asked.latency_s,
        "messages": asked.messages,
        "utilisation": used,
    }


def run_of(_plan: FigurePlan, seed: int, **different: Any) -> dict[str, Any]:
    """Return a row with the usual values, but for these."""
    usual: dict[str, Any] = {
        "scheme": INDIQOS,
        "replicas": 1,
        "types": TYPES,
        "shared": False,
        "accepted_max": 0,  # until the network is full
        "nodes": 252,
    }
    assert different.keys() <= usual.keys(), "a parameter of these runs"
    return {**usual, **different, "seed": seed}
