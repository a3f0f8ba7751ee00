"""Is a delay a hop, or what was measured, or what is usual?"""

from __future__ import annotations

import pytest
from tests.broker.peers.test_outbox import link, new_mail

from betimes.broker.peers.delays import PeerDelays


def test_everybody_is_a_hop_away_where_hops_are_counted():
    assert PeerDelays(new_mail(), is_timed=False).to("a:1") == 1.0


def test_half_of_the_shortest_round_trip_is_known_of_links_and_the_usual_of_others():
    mail = new_mail()
    delays = PeerDelays(mail, is_timed=True)
    assert delays.to("a:1") == 0.0
    end = link("a:1")
    mail.up(end, "me:1")
    assert delays.to("a:1") == 0.0
    for round_trip_s in (0.5, 0.3, 0.4):
        end.transit.heard_back(round_trip_s, 1.0)
    assert delays.to("a:1+") == pytest.approx(0.15)
    mail.down(end)
    assert delays.to("a:1") == 0.0
    delays.keep(end)
    assert delays.to("a:1") == pytest.approx(0.15)
    assert delays.to("b:1") == pytest.approx(0.15)
    far = link("c:1")
    far.transit.heard_back(2.3, 1.0)
    delays.keep(far)
    assert delays.to("b:1") == pytest.approx(0.25)
