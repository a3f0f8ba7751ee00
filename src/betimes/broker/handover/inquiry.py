"""Inquiries for a session, flooded to all brokers; each broker returns "no", or the session.

The echo algorithm: a broker forwards an inquiry to all its other neighbours, and returns "no" once all of
them have, or their links are down. So an asking broker learns without a time limit that no broker has the
session, in any network. The broker that has it returns "moving", and sends it to the asking broker directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from betimes.broker.handover.packets import InquiryId, NoSession, SessionInquiry, written
from betimes.broker.links.broker_link import BrokerLink

ASKS_MAX = 10_000  # remembered at once
KEPT_S = 30.0  # an inquiry


@dataclass(slots=True, eq=False)
class Inquiry:
    """An inquiry that is open, or was answered recently."""

    message: SessionInquiry
    parent: BrokerLink | None  # the link it came from; None: this broker asks
    since_s: float
    waiting: set[BrokerLink] = field(default_factory=set)  # the links without an answer
    brokers: set[str] = field(default_factory=set)  # that do not have the session
    is_moving: bool = False  # a broker answered that the session is being moved, or could not be asked
    has_come: bool = False  # the session is here: nothing is to be concluded


class Inquiries:
    """The inquiries that this broker knows; `concluded` is called when one of its own found no session."""

    def __init__(
        self,
        name: str,
        ends: Callable[[], Iterable[BrokerLink]],
        concluded: Callable[[Inquiry, float], None],
    ) -> None:
        self._name = name
        self._ends = ends
        self._concluded = concluded
        self._known: dict[InquiryId, Inquiry] = {}

    def get(self, ask_id: InquiryId) -> Inquiry | None:
        """Return a known inquiry; None if there is none of this id."""
        return self._known.get(ask_id)

    @property
    def is_full(self) -> bool:
        """Tell whether the table is full."""
        return len(self._known) >= ASKS_MAX

    def remember(self, message: SessionInquiry, parent: BrokerLink | None, now_s: float) -> Inquiry:
        """Add an inquiry to the table."""
        inquiry = self._known[message.id] = Inquiry(message, parent, now_s)
        return inquiry

    def spread(self, inquiry: Inquiry, now_s: float) -> None:
        """Send an inquiry to all neighbours except the one it came from."""
        payload = written(inquiry.message)
        for end in list(self._ends()):
            if end is not inquiry.parent:
                if end.say_of_session(payload, now_s):
                    inquiry.waiting.add(end)
                else:
                    inquiry.is_moving = True  # the neighbour could not be asked now: ask again
        self._conclude(inquiry, now_s)

    def hear_no(self, end: BrokerLink, message: NoSession, now_s: float) -> None:
        """Note that no broker behind a neighbour has the session, or has it any longer."""
        inquiry = self._known.get(message.id)
        if inquiry is not None:
            inquiry.is_moving |= message.is_moving
            inquiry.brokers.update(message.brokers)
            self._answered(inquiry, end, now_s)

    def link_down(self, end: BrokerLink, now_s: float) -> None:
        """Forget the inquiries of a lost neighbour, and no longer wait for its answers."""
        for inquiry in list(self._known.values()):
            if inquiry.parent is end:
                self._known.pop(inquiry.message.id, None)
            else:
                inquiry.is_moving |= end in inquiry.waiting  # it did not answer: ask again
                self._answered(inquiry, end, now_s)

    def forget(self, inquiry: Inquiry) -> None:
        """Remove an inquiry from the table."""
        self._known.pop(inquiry.message.id, None)

    def forget_old(self, now_s: float) -> None:
        """Remove old inquiries from the table."""
        while self._known:
            oldest = next(iter(self._known.values()))
            if now_s - oldest.since_s <= KEPT_S:
                return
            self.forget(oldest)

    def _answered(self, inquiry: Inquiry, end: BrokerLink, now_s: float) -> None:
        if end in inquiry.waiting:
            inquiry.waiting.discard(end)
            self._conclude(inquiry, now_s)

    def _conclude(self, inquiry: Inquiry, now_s: float) -> None:
        """Answer "no" once all other neighbours have."""
        if inquiry.waiting or inquiry.has_come:
            return
        if inquiry.parent is None:
            self._concluded(inquiry, now_s)
        else:
            brokers = (self._name, *inquiry.brokers)
            no = NoSession(id=inquiry.message.id, is_moving=inquiry.is_moving, brokers=brokers)
            inquiry.parent.say_of_session(written(no), now_s)
