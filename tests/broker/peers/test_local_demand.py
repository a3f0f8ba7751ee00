"""Does a process want what it was told, or what its clients ask for?"""

from __future__ import annotations

import pytest
from tests.broker.peer_networks import SPACE
from tests.broker.talking import new_session

from betimes.broker.delivery.session import BrokerSubscription
from betimes.broker.peers.local_demand import BOXES_MAX, PeerDemand
from betimes.language.filters.parse import parse_filter
from betimes.matching.dz.spaces import cell_boxes
from betimes.model.filters import EVERYTHING
from betimes.model.subscriptions import QoS
from betimes.mqtt.subscribe_options import SubscribeOptions


def grant(text: str | None, pattern: str = "t") -> BrokerSubscription:
    session = new_session()
    wish = None if text is None else SubscribeOptions(filter=parse_filter(text), qos=QoS())
    return BrokerSubscription(session=session, pattern=pattern, options=wish)


def test_what_clients_ask_for_is_wanted_as_long_as_one_of_them_does():
    wishes = PeerDemand(SPACE, None)
    assert not wishes.boxes()
    one, other = grant("x > 50"), grant("x > 50")
    wishes.add(one)
    assert [each.text for each in wishes.filters] == ["x > 50"]
    wishes.has_changed = False
    wishes.add(other)
    wishes.remove(one)
    assert not wishes.has_changed
    assert wishes.boxes() == (((32, 63), (0, 63)),)
    assert wishes.want({"x": 51.0, "y": 1.0})
    assert not wishes.want({"x": 50.0, "y": 1.0})
    wishes.remove(other)
    assert not wishes.boxes()


def test_a_client_without_a_filter_wants_everything_but_not_by_looking_at_the_server():
    wishes = PeerDemand(SPACE, None)
    wishes.add(grant(None, "$betimes/peer/#"))
    assert not wishes.boxes()
    wishes.add(grant(None))
    assert wishes.boxes() == cell_boxes(SPACE, EVERYTHING)
    wishes.remove(grant(None, "$betimes/peer/#"))
    assert wishes.want({})


def test_who_was_told_what_to_want_does_not_ask_its_clients():
    wishes = PeerDemand(SPACE, (parse_filter("x > 50"),))
    assert wishes.has_changed
    wishes.add(grant("y > 3"))
    wishes.remove(grant("y > 3"))
    assert [each.text for each in wishes.filters] == ["x > 50"]


@pytest.mark.long
def test_very_many_boxes_are_everything():
    wishes = PeerDemand(SPACE, None)
    for number in range(BOXES_MAX + 1):
        low, row = number % 60, number // 60
        wishes.add(
            grant(f"x >= {low * 1.5625} AND x < {(low + 1) * 1.5625} AND y >= {row * 1.5625} AND y < 99")
        )
    assert wishes.boxes() == cell_boxes(SPACE, EVERYTHING)
