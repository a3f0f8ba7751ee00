"""Is a hub part of an overlay from then on?"""

from __future__ import annotations

import pytest
from tests.broker.peer_networks import plan
from tests.broker.talking import OPEN_ACCESS, Client, new_hub

from betimes.broker.composition import join_overlay
from betimes.broker.core.hub import Hub
from betimes.broker.peers.overlay import PeerOverlay


def join(hub: Hub) -> PeerOverlay:
    return join_overlay(
        hub, plan("a"), life=1, dial=lambda _, __: None, refused=lambda _text: None, now_s=0.0
    )


def test_what_clients_want_and_publish_goes_to_the_overlay():
    hub = Hub("a:1", access_control=OPEN_ACCESS)
    overlay = join(hub)
    assert hub.network is overlay
    client = Client(hub)
    client.subscribe("t")
    assert overlay.demand.has_changed
    client.publish("t", user_properties=[("x", "5")])
    assert overlay.tally.published == 1
    hub.tick(1.0)
    assert overlay.subscriber.dz


def test_events_are_numbered_by_where_they_come_from():
    with pytest.raises(AssertionError):
        join(new_hub())
