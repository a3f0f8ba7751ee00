"""Does a session stay whole until somebody else has it, and is nothing left of it then?"""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.handover import outgoing as departing
from betimes.broker.handover.outgoing import GIVEN_UP_AFTER_S, LINGER_S, OutgoingSessions
from betimes.broker.handover.packets import (
    InquiryId,
    LateDeliveries,
    MoreParts,
    NoSession,
    SessionInquiry,
    SessionPart,
    SessionTaken,
    read_session_message,
)
from betimes.model.telemetry import Reason

ASK = SessionInquiry(id=InquiryId("b2", 1), client_id="ben", user=None, packet_bytes_max=100_000)


class End:
    def __init__(self) -> None:
        self.told: list[Any] = []
        self.is_up = True

    def say_of_session(self, payload: bytes, _now_s: float) -> bool:
        self.told += [read_session_message(payload)] if self.is_up else []
        return self.is_up


@pytest.fixture
def leaving():
    hub = new_hub()
    ben = Client(hub, "ben", session_expiry_interval=1000)
    ben.subscribe("t", qos=1)
    ben.connection.lost(0.0)
    anna = Client(hub, "anna")
    for _ in range(1000):
        anna.publish("t", b"x" * 500, qos=1)
    departures, end = OutgoingSessions(hub), End()
    departures.give(end, ASK, hub.sessions["ben"], 0.0)  # type: ignore[arg-type]
    return hub, departures, end


@pytest.mark.long
def test_parts_go_as_fast_as_they_are_taken(leaving):
    hub, departures, end = leaving
    assert [each.number for each in end.told] == [0, 1, 2, 3]
    while not end.told[-1].is_last:
        departures.hear(ASK, MoreParts(id=ASK.id, parts=len(end.told) - 3), 0.0)
    assert sum(len(each.rows) for each in end.told) == 1001
    assert all(isinstance(each, SessionPart) for each in end.told)
    assert len(hub.sessions["ben"]) == 1000


def test_who_is_silent_for_too_long_gets_no_more(leaving):
    hub, departures, _end = leaving
    departures.tick(GIVEN_UP_AFTER_S - 0.1)
    assert departures.is_leaving("ben")
    departures.tick(GIVEN_UP_AFTER_S)
    assert not departures.is_leaving("ben")
    departures.hear(ASK, SessionTaken(id=ASK.id), GIVEN_UP_AFTER_S)
    assert len(hub.sessions["ben"]) == 1000


@pytest.mark.parametrize("how", ["no", "link", "called off"])
def test_it_stays_where_it_is_when_the_move_comes_to_nothing(leaving, how):
    hub, departures, end = leaving
    if how == "no":
        departures.hear(ASK, NoSession(id=ASK.id), 0.0)
    elif how == "link":
        departures.link_down(end)
    else:
        departures.call_off("ben", 0.0)
        assert end.told[-1] == NoSession(id=ASK.id)
    assert not departures.is_leaving("ben")
    assert (len(hub.sessions["ben"]), departures.count) == (1000, 0)


def test_what_comes_later_follows_until_the_time_is_over(leaving):
    hub, departures, end = leaving
    anna = Client(hub, "anna")
    anna.publish("t", b"between", qos=1)
    departures.hear(ASK, SessionTaken(id=ASK.id), 0.0)
    assert departures.gone("ben") is not None
    anna.publish("t", b"after", qos=1)
    departures.tick(1.0)
    late = [each for each in end.told if isinstance(each, LateDeliveries)]
    assert [b"between" in late[0].packets, b"after" in late[1].packets] == [True, True]
    assert departures.went_lately("ben", 2.0, 1.0)
    assert not departures.went_lately("ben", 2.0, 3.0)
    departures.tick(LINGER_S)
    assert (hub.held[0], departures.gone("ben"), departures.count) == (0, None, 1)
    assert sum(hub.counters.lost.values()) == 0


def test_what_cannot_follow_is_lost_with_a_reason(leaving):
    hub, departures, end = leaving
    departures.hear(ASK, SessionTaken(id=ASK.id), 0.0)
    end.is_up = False
    Client(hub, "anna").publish("t", b"after", qos=1)
    departures.tick(1.0)
    assert hub.counters.lost[Reason.UNREACHABLE] == 1


def test_a_session_that_ended_meanwhile_is_not_let_go_again(leaving):
    hub, departures, _end = leaving
    hub.tick(2000.0)
    departures.hear(ASK, SessionTaken(id=ASK.id), 0.0)
    assert departures.count == 0


@pytest.mark.long
def test_no_more_leave_at_once_than_may(leaving, monkeypatch):
    hub, departures, _ = leaving
    monkeypatch.setattr(departing, "LEAVING_MAX", 1)
    end = End()
    Client(hub, "eve", session_expiry_interval=1000)
    departures.give(end, ASK, hub.sessions["eve"], 0.0)
    assert end.told == [NoSession(id=ASK.id, is_moving=True)]
    assert hub.sessions["eve"].connection is not None
