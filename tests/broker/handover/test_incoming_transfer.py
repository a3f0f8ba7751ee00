"""Does a hub have all of a session that comes, and nothing of one that went, also after a crash?"""

from __future__ import annotations

import json

from tests.broker.keeping import Shelf, kept_hub
from tests.broker.talking import Client, new_hub

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.core.hub import Hub
from betimes.broker.durability.session_rows import RowWriter, SessionRows, session_items
from betimes.broker.handover.incoming import fits, move_in
from betimes.model.telemetry import Reason


def packed(hub: Hub, client_id: str = "ben") -> SessionRows:
    writer, luggage = RowWriter(session_items(hub.sessions[client_id]), bytes_max=10**6), SessionRows()
    while not writer.is_done:
        rows, packets = writer.part(0.0)
        luggage.add(json.loads(json.dumps(rows)), packets, 0.0)
    return luggage


def hub_with_waiting(count: int = 3) -> Hub:
    hub = new_hub()
    ben = Client(hub, "ben", session_expiry_interval=100)
    ben.subscribe("t", qos=2)
    ben.publish("u", qos=2, packet_id=5)
    ben.connection.lost(0.0)
    anna = Client(hub, "anna")
    for number in range(count):
        anna.publish("t", str(number).encode(), qos=1)
    return hub


def test_a_session_that_came_survives_a_crash():
    shelf = Shelf()
    hub, store = kept_hub(shelf)
    move_in(hub, "ben", None, 100.0, packed(hub_with_waiting()), 0.0)
    store.commit()
    hub, _ = kept_hub(shelf)
    ben = Client(hub, "ben", clean_start=False, session_expiry_interval=100)
    assert ben.connack.session_present
    assert [each.payload for each in ben.first] == [b"0", b"1", b"2"]
    assert hub.sessions["ben"].incoming == {5}
    assert list(hub.sessions["ben"].subscriptions) == ["t"]


def test_a_session_that_came_and_is_not_fetched_ends_in_time():
    hub = new_hub()
    move_in(hub, "ben", None, 100.0, packed(hub_with_waiting()), 0.0)
    hub.tick(101.0)
    assert "ben" not in hub.sessions
    assert hub.counters.lost[Reason.SESSION_ENDED] == 3


def test_a_session_beyond_the_limits_does_not_fit():
    luggage = packed(hub_with_waiting(50))
    assert fits(new_hub(), luggage)
    assert not fits(new_hub(subscriptions_max=0), luggage)
    assert not fits(new_hub(queue_bytes_max=1000), luggage)


def test_what_there_is_no_room_for_is_lost_with_a_reason():
    hub = new_hub(queue_bytes_max=1_000)
    move_in(hub, "ben", None, 100.0, packed(hub_with_waiting(50)), 0.0)
    assert hub.counters.lost[Reason.QUEUE_FULL] == 50 - len(hub.sessions["ben"]) > 0


def test_what_the_access_list_here_denies_does_not_come_along():
    access = AccessList.read("topic readwrite other\n", "list")
    hub, moved = (
        new_hub(access_control=AccessControl(anonymous=True, access=access)),
        packed(hub_with_waiting()),
    )
    session = move_in(hub, "ben", None, 100.0, moved, 0.0)
    assert len(session) == 0
    assert hub.counters.lost[Reason.REFUSED] == 3
