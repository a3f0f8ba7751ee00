"""The view of each peer: a sample of all peers, renewed by gossip.

Every cycle a peer picks one peer of its view, and both exchange a part of their views, so that about half of
a view is new each cycle and no peer becomes better known than others. Peers that have left are replaced by
the partner. Both learn which publishers the other has heard of.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel

VIEW_SHARE = 0.05  # of all peers
VIEW_MIN, VIEW_MAX = 20, 500
TRIES_MAX = 8  # to find a peer that is still present
NO_DZ = 64  # in place of a length: longer than any expression, so that it covers nothing

Places = NDArray[np.int32]


def first_views(count: int, size: int, generator: np.random.Generator) -> Places:
    """Return the first views: random peers."""
    return generator.integers(0, count, (count, size), dtype=np.int32)


def view_size(count: int) -> int:
    """Return how many other peers a view holds, for so many peers."""
    return int(min(max(round(VIEW_SHARE * count), VIEW_MIN), VIEW_MAX))


@inlined
def drawn(state: NDArray[np.uint64], below: int) -> int:
    """Return a number below this one (xorshift64*)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return int((x * np.uint64(2685821657736338717)) >> np.uint64(33)) % below


@kernel
def renew_views(
    views: Places, is_here: NDArray[np.bool_], known: NDArray[np.bool_], state: NDArray[np.uint64]
) -> None:
    """Let every peer exchange views with a peer of its view."""
    count, size = views.shape
    for peer in range(count):
        if not is_here[peer]:
            continue
        partner = -1
        for _ in range(TRIES_MAX):
            other = views[peer, drawn(state, size)]
            if is_here[other] and other != peer:
                partner = other
                break
        if partner < 0:
            continue
        for publisher in range(known.shape[1]):
            either = known[peer, publisher] or known[partner, publisher]
            known[peer, publisher] = known[partner, publisher] = either
        for place in range(size):
            if drawn(state, 4) == 0:
                other = drawn(state, size)
                views[peer, place], views[partner, other] = views[partner, other], views[peer, place]
                if views[partner, other] == partner:
                    views[partner, other] = peer
            if not is_here[views[peer, place]] or views[peer, place] == peer:
                views[peer, place] = partner


@kernel
def known_serving(
    view: Places,
    bits: NDArray[np.int64],
    lengths: NDArray[np.int64],
    delays: NDArray[np.float64],
    wanted: int,
    delay_max: float,
    found: Places,
) -> int:
    """Write the peers of a view that receive all that is wanted, with a delay bound that is no longer.

    Lengths are those of integers, with the leading 1; the first expressions of a peer come first.
    """
    length, count = 0, 0
    while wanted >> length:
        length += 1
    for other in view:
        if delays[other] > delay_max:
            continue
        for number in range(bits.shape[1]):
            over = length - lengths[other, number]
            if lengths[other, number] == NO_DZ:
                break
            if over >= 0 and wanted >> over == bits[other, number]:
                found[count] = other
                count += 1
                break
    return count
