"""How do tests come by a small overlay? Nodes somewhere in a square, on the simulator's clock."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np

from betimes.reservations.overlay.dht import DhtSettings
from betimes.reservations.overlay_node import ReservationOverlaySettings
from betimes.simulator.reservation_overlay import ReservationOverlay

SETTINGS = ReservationOverlaySettings(
    dht=DhtSettings(beat_every_s=1.0, lost_after_s=3.0, forgotten_for_s=10.0),
    refresh_every_s=2.0,
    lapse_after_s=6.0,
    answer_s_max=2.0,
)
REPAIRED_S = 20.0  # by then everybody has found out who is gone


def small_overlay(seed, *, count=16, present=None, link_bytes_per_s=80, beats=8, settings=SETTINGS):
    """Return an overlay of so many nodes, of which the first ones are present.

    To grow one takes long, and many tests begin with the same: each gets a copy.
    """
    return pickle.loads(grown(seed, count, present, link_bytes_per_s, beats, settings))


@cache
def grown(seed, count, present, link_bytes_per_s, beats, settings):
    """Return an overlay as it is once it has grown, pickled."""
    places = np.random.default_rng(seed).uniform(0.0, 0.05, (count, 2))
    latencies_s = np.linalg.norm(places[:, None] - places[None], axis=2) + 0.001
    np.fill_diagonal(latencies_s, 0.0)
    overlay = ReservationOverlay(latencies_s, seed, settings=settings, link_bytes_per_s=link_bytes_per_s)
    overlay.grow(beats, overlay.names[: present or count])
    return pickle.dumps(overlay)
