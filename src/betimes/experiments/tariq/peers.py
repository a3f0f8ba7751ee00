"""The overlay behind the figures of Tariq et al. (002), and what is measured of it.

The overlay runs cycle by cycle. A peer is *converged* if it has parents for all it wants; it is *notified* if
it receives every event it wants within its delay, tested by an event in each of 512 parts of the space, which
go from peer to peer. False positives are events that peers receive without wanting them, as a share of all
events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from betimes.experiments.figure import FigurePlan, Point, Row, fitting, spread, spread_point
from betimes.peers.settings import our_settings, paper_settings
from betimes.simulator.peers.network import Newcomer, PeerNetwork
from betimes.simulator.peers.worlds import (
    GRID,
    MODERATE,
    S1,
    S2,
    SPACE,
    UNIFORM,
    PeerDelayMatrix,
    PeerWorld,
    wanted,
)

PAPER, OURS = "paper", "ours"
PROTOCOLS = (PAPER, OURS)
PEERS, QUICK_PEERS = 1_000, 300
EVENTS_EVERY = 2  # cycles
DELAYS: dict[str, PeerDelayMatrix] = {"moderate": MODERATE, "S1": S1, "S2": S2}
REQUESTS = (1, 2, 3, 5, 8, 12, 20, 50)  # of one peer: limits below which the share of peers is counted
BUILT = 0.99  # of the subscribers notified: then the overlay is complete


def run_of(plan: FigurePlan, seed: int, protocol: str, **different: Any) -> dict[str, Any]:
    """Return a row with the usual values, but for these."""
    peers = int(different.pop("peers", QUICK_PEERS if plan.quick else PEERS))
    usual: dict[str, Any] = {
        "workload": GRID,
        "popularity": UNIFORM,
        "delays": "moderate",
        "out_degree": int(math.log2(peers)),
        "allowed": 0.0625,
        "expressions": 8,
        "churn": 0.0,
        "shock": 0.0,
        "cycles": 60 if plan.quick else 160,
    }
    assert different.keys() <= usual.keys(), "a parameter of the figures"
    return {"protocol": protocol, "peers": peers, **usual, **different, "seed": seed}


class PaperOverlay:
    """One world of peers, and the measurements of it."""

    def __init__(self, row: Row) -> None:
        make = our_settings if row["protocol"] == OURS else paper_settings
        settings = make(int(row["out_degree"]), float(row["allowed"]), int(row["expressions"]))
        seed = int(row["seed"])
        self.world = PeerWorld(str(row["workload"]), str(row["popularity"]), DELAYS[str(row["delays"])], seed)
        self.publishers = self.world.publishers()
        subscribers = [self.world.subscriber() for _ in range(int(row["peers"]))]
        self.newcomers: list[Newcomer] = [*self.publishers, *subscribers]
        self.network = PeerNetwork(SPACE, self.newcomers, settings, seed)
        self._chance = np.random.default_rng(seed)
        self.notified = 0.0

    @property
    def subscribers(self) -> range:
        """Return the places of subscribers."""
        return range(len(self.publishers), len(self.newcomers))

    @property
    def converged(self) -> float:
        """Return the share of subscribers that have parents for all they want."""
        peers = self.network.peers
        return float(np.mean([not peers[place].lines.uncovered() for place in self.subscribers]))

    def replace(self, share: float) -> None:
        """Let a share of the subscribers leave, and as many others join."""
        count = round(share * len(self.subscribers))
        for place in self._chance.choice(np.array(self.subscribers), count, replace=False).tolist():
            self.network.leave(place)
            self.newcomers[place] = self.world.subscriber()
            self.network.join(place, self.newcomers[place])

    def cycle(self, number: int, churn: float) -> None:
        """Let a cycle pass, in which a share of the subscribers is replaced."""
        if churn:
            self.replace(churn)
        self.network.cycle()
        if number % EVENTS_EVERY == 0:
            self._probe()

    def _probe(self) -> None:
        """Publish an event in each part of the space; count the peers that receive all they want in time."""
        events = self.world.probe()
        for place in range(len(self.publishers)):
            rate = len(events) / EVENTS_EVERY / len(self.publishers)
            self.network.peers[place].published_rate = rate
        missing = wanted(self.newcomers, events)
        for place, event, in_time in self.network.publish(events):
            if in_time:
                missing[place, event] = False
        self.notified = 1.0 - float(missing[self.subscribers.start :].any(axis=1).mean())


def run_row(row: Row) -> dict[str, Any]:
    """Run an overlay; return its measures every tenth cycle, and at the end."""
    overlay = PaperOverlay(row)
    found: dict[str, Any] = {}
    cycles = int(row["cycles"])
    built_at = math.inf
    for number in range(1, cycles + 1):
        if row["shock"] and number == cycles // 2 + 1:
            overlay.replace(float(row["shock"]))
        overlay.cycle(number, float(row["churn"]))
        if overlay.notified >= BUILT:
            built_at = min(built_at, float(number))
        if number % 10 == 0:
            found[f"converged_{number}"] = 100.0 * overlay.converged
            found[f"notified_{number}"] = 100.0 * overlay.notified
    peers = [overlay.network.peers[place] for place in overlay.subscribers]
    requests = np.array([peer.requests for peer in peers])
    events = cycles // EVENTS_EVERY * 512
    return {
        **found,
        **{f"requests_{most}": 100.0 * float(np.mean(requests <= most)) for most in REQUESTS},
        "converged": 100.0 * overlay.converged,
        "notified": 100.0 * overlay.notified,
        "false": 100.0 * sum(peer.unwanted for peer in peers) / (len(peers) * events),
        "built_at": min(built_at, float(cycles)),  # or it takes longer
        "in_degree": float(np.mean([len(peer.lines.parents()) for peer in peers])),
        "dz": float(np.mean([len(peer.dz) for peer in peers])),
        "requests": float(requests.mean()),
    }


def over_cycles(results: Sequence[Row], measure: str, *, panel: str, curve: str, **where: Any) -> list[Point]:
    """Return a curve over the cycles of runs."""
    rows = fitting(results, where)
    names = [name for name in (rows[0] if rows else {}) if name.startswith(f"{measure}_")]
    cycles = sorted(int(name.rpartition("_")[2]) for name in names)
    spreads = [spread([float(row[f"{measure}_{cycle}"]) for row in rows]) for cycle in cycles]
    return [
        spread_point(panel, curve, float(cycle), each) for cycle, each in zip(cycles, spreads, strict=True)
    ]
