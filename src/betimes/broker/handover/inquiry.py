"""Inquiries for a session, flooded to all brokers; each broker returns "no", or the session.

The echo algorithm: a broker forwards an inquiry to all its other neighbours, and returns "no" once all of
them have, or their links are down. So an asking broker learns without a time limit that no broker has the
session, in any network. An answer takes the route of the inquiry back, and messages to the answering broker
take the route of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from betimes.broker.handover.packets import InquiryId, NoSession, SessionInquiry, written
from betimes.broker.links.broker_link import BrokerLink

ASKS_MAX = 10_000  # remembered at once
KEPT_S = 30.0  # an answered inquiry, for later messages on the same route


@dataclass(slots=True, eq=False)
class Inquiry:
    """An inquiry that is open, or was answered recently."""

    said: SessionInquiry
    parent: BrokerLink | None  # the link it came from; None: this broker asks
    since_s: float
    waiting: set[BrokerLink] = field(default_factory=set)  # the links without an answer
    source: BrokerLink | None = None  # the link that the session comes from
    is_moving: bool = False  # a broker answered that the session is being moved
    has_come: bool = False  # the session is here


class Inquiries:
    """The inquiries that this broker knows; `concluded` is called when one of its own found no session."""

    def __init__(
        self, ends: Callable[[], Iterable[BrokerLink]], concluded: Callable[[Inquiry, float], None]
    ) -> None:
        self._ends = ends
        self._concluded = concluded
        self._known: dict[InquiryId, Inquiry] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Inquiry]:
        return iter(list(self._known.values()))

    def get(self, ask_id: InquiryId) -> Inquiry | None:
        """Return a known inquiry; None if there is none of this id."""
        return self._known.get(ask_id)

    @property
    def is_full(self) -> bool:
        """Tell whether the table is full."""
        return len(self._known) >= ASKS_MAX

    def remember(self, said: SessionInquiry, parent: BrokerLink | None, now_s: float) -> Inquiry:
        """Add an inquiry to the table."""
        asking = self._known[said.id] = Inquiry(said, parent, now_s)
        return asking

    def spread(self, asking: Inquiry, now_s: float) -> None:
        """Send an inquiry to all neighbours except the one it came from."""
        payload = written(asking.said)
        for end in list(self._ends()):
            if end is not asking.parent:
                if end.say_of_session(payload, now_s):
                    asking.waiting.add(end)
                else:
                    asking.is_moving = True  # the neighbour could not be asked now: ask again
        self._look(asking, now_s)

    def hear_no(self, end: BrokerLink, said: NoSession, now_s: float) -> None:
        """Note that no broker behind a neighbour has the session, or has it any longer."""
        asking = self._known.get(said.id)
        if asking is not None:
            asking.is_moving |= said.is_moving
            self._gone(asking, end, now_s)

    def answered(self, end: BrokerLink, ask_id: InquiryId) -> Inquiry | None:
        """Note that a neighbour sends the session; None if it was not asked, or another one sends it."""
        asking = self._known.get(ask_id)
        if asking is None or (asking.source is None and end not in asking.waiting):
            return None
        if asking.source is None:
            asking.waiting.discard(end)
            asking.source = end
        return asking if asking.source is end else None

    def link_down(self, end: BrokerLink, now_s: float) -> None:
        """Forget the inquiries of a lost neighbour, and no longer wait for its answers."""
        for asking in self:
            if asking.parent is end:
                self._known.pop(asking.said.id, None)
            else:
                asking.is_moving |= asking.source is end
                self._gone(asking, end, now_s)

    def forget(self, asking: Inquiry) -> None:
        """Remove an inquiry from the table."""
        self._known.pop(asking.said.id, None)

    def forget_old(self, now_s: float) -> None:
        """Remove old inquiries from the table."""
        while self._known:
            oldest = next(iter(self._known.values()))
            if now_s - oldest.since_s <= KEPT_S:
                return
            self.forget(oldest)

    def _gone(self, asking: Inquiry, end: BrokerLink, now_s: float) -> None:
        if end in asking.waiting or asking.source is end:
            asking.waiting.discard(end)
            asking.source = None if asking.source is end else asking.source
            self._look(asking, now_s)

    def _look(self, asking: Inquiry, now_s: float) -> None:
        """Answer "no" once all other neighbours have."""
        if asking.waiting or asking.source is not None or asking.has_come:
            return
        self.forget(asking)
        if asking.parent is None:
            self._concluded(asking, now_s)
        else:
            asking.parent.say_of_session(
                written(NoSession(id=asking.said.id, is_moving=asking.is_moving)), now_s
            )
