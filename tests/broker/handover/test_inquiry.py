"""Does a question come back from everybody, however the network looks and whoever goes meanwhile?"""

from __future__ import annotations

from typing import Any

import pytest

from betimes.broker.handover.inquiry import ASKS_MAX, KEPT_S, Inquiries, Inquiry
from betimes.broker.handover.packets import InquiryId, NoSession, SessionInquiry, read_session_message


class End:
    """A neighbour that writes down what it is told."""

    def __init__(self, *, takes: bool = True) -> None:
        self.told: list[Any] = []
        self.takes = takes

    def say_of_session(self, payload: bytes, _now_s: float) -> bool:
        self.told += [read_session_message(payload)] if self.takes else []
        return self.takes


def asked(number: int = 1) -> SessionInquiry:
    return SessionInquiry(id=InquiryId("b1", number), client_id="ben", user=None, packet_bytes_max=9)


def questions(*ends: End) -> tuple[Any, list[Inquiry]]:
    concluded: list[Inquiry] = []
    neighbours: Any = ends
    return Inquiries("me", lambda: neighbours, lambda asking, _now_s: concluded.append(asking)), concluded


def test_no_is_said_when_all_others_have():
    one, two, parent = End(), End(), End()
    found, concluded = questions(one, two, parent)
    found.spread(found.remember(asked(), parent, 0.0), 0.0)
    assert one.told == two.told == [asked()]
    found.hear_no(one, NoSession(id=asked().id, brokers=("one",)), 0.0)
    assert parent.told == []
    found.hear_no(two, NoSession(id=asked().id, is_moving=True), 0.0)
    assert parent.told == [NoSession(id=asked().id, is_moving=True, brokers=("me", "one"))]
    assert concluded == []


def test_a_leaf_says_no_at_once():
    parent = End()
    found, _ = questions(parent)
    found.spread(found.remember(asked(), parent, 0.0), 0.0)
    assert parent.told == [NoSession(id=asked().id, brokers=("me",))]


def test_a_question_of_ours_is_concluded_when_links_go_down_too():
    one, two = End(), End()
    found, concluded = questions(one, two)
    asking = found.remember(asked(), None, 0.0)
    found.spread(asking, 0.0)
    found.hear_no(two, NoSession(id=asked().id), 0.0)
    found.link_down(one, 0.0)
    assert concluded == [asking]
    assert asking.is_moving  # the one that is lost did not answer


def test_who_cannot_be_asked_now_is_to_be_asked_again():
    found, concluded = questions(End(takes=False))
    found.spread(found.remember(asked(), None, 0.0), 0.0)
    assert concluded[0].is_moving


def test_what_a_lost_neighbour_asked_is_forgotten():
    one, parent = End(), End()
    found, _ = questions(one, parent)
    found.spread(found.remember(asked(), parent, 0.0), 0.0)
    found.link_down(parent, 0.0)
    assert found.get(asked().id) is None


@pytest.mark.long
def test_questions_are_forgotten_in_time_and_are_not_too_many():
    found, _ = questions(End())
    for number in range(ASKS_MAX):
        found.remember(asked(number), None, float(number >= 10))
    assert found.is_full
    found.forget_old(KEPT_S + 0.5)
    assert len(found._known) == ASKS_MAX - 10
