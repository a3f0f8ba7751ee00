"""Is a hub part of an overlay from then on?"""

from __future__ import annotations

import pytest
from tests.broker.peer_networks import plan
from tests.broker.talking import OPEN_GATE, Client, new_hub

from betimes.broker.core.hub import Hub
from betimes.broker.peer_joining import join_overlay


def test_what_clients_want_and_publish_goes_to_the_overlay():
    hub = Hub("a:1", gate=OPEN_GATE)
    overlay = join_overlay(hub, plan("a"), life=1, now_s=0.0)
    assert hub.overlay is hub.network is overlay
    client = Client(hub)
    client.subscribe("t")
    assert overlay.wishes.has_changed
    client.publish("t", user_properties=[("x", "5")])
    assert overlay.tally.published == 1
    hub.tick(1.0)
    assert overlay.subscriber.dz


def test_events_are_numbered_by_where_they_come_from():
    with pytest.raises(AssertionError):
        join_overlay(new_hub(), plan("a"), life=1, now_s=0.0)
