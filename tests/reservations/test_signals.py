"""Is a way cut where it comes to a node twice?"""

from __future__ import annotations

import doctest
import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from betimes.reservations import signals
from betimes.reservations.overlay.coordinates import Coordinate
from betimes.reservations.signals import Hop, Offer, without_loops

ways = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12).filter(
    lambda names: all(left != right for left, right in pairwise(names))
)


@given(ways)
def test_a_cut_way_has_the_same_ends_and_only_links_of_the_first(names):
    cut = [hop.name for hop in without_loops(tuple([Hop(name) for name in names]))]
    assert (cut[0], cut[-1]) == (names[0], names[-1])
    assert len(set(cut)) == len(cut)
    assert set(pairwise(cut)) <= set(pairwise(names))


def test_an_offer_adds_up_latencies_and_knows_its_tightest_fresh_link():
    way = (Hop("s"), Hop("x", 0.25, 40), Hop("r", 0.5, 70), Hop("p", 1.0, 5))
    offer = Offer("p", 10, Coordinate(), way, fresh_hops=3)
    assert offer.latency_s == 1.75
    assert offer.room_bytes_per_s == 40  # what the advertisement saw long ago decides nothing
    assert offer._replace(way=(Hop("s"),), fresh_hops=1).room_bytes_per_s == math.inf


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(signals).failed == 0
