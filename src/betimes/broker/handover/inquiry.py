"""Who in the network has it? A question goes to everybody, and comes back with everybody's no, or an answer.

The echo algorithm: a broker passes a question on to all its other neighbours, and says no when all of them
have, or are gone. So nobody has to wait for a time limit to know that there is nothing, in any network. An
answer goes back along the way that the question came, and what is said to whoever gives it goes along the
way that the answer came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from betimes.broker.handover.packets import InquiryId, NoSession, SessionInquiry, written
from betimes.broker.links.broker_link import BrokerLink

ASKS_MAX = 10_000  # remembered at once
KEPT_S = 30.0  # a question that was answered, for what still follows on the same way


@dataclass(slots=True, eq=False)
class Inquiry:
    """A question that is under way, or was answered lately."""

    said: SessionInquiry
    parent: BrokerLink | None  # from whom it came; None: it is ours
    since_s: float
    waiting: set[BrokerLink] = field(default_factory=set)  # for the word of these
    source: BrokerLink | None = None  # who answers
    is_moving: bool = False  # somebody says that it is on the move
    has_come: bool = False  # what was asked for is here


class Inquiries:
    """The questions that went through this broker; `concluded` hears when one of our own came to nothing."""

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
        """Return a question that is known."""
        return self._known.get(ask_id)

    @property
    def is_full(self) -> bool:
        """Tell whether no more can be remembered."""
        return len(self._known) >= ASKS_MAX

    def remember(self, said: SessionInquiry, parent: BrokerLink | None, now_s: float) -> Inquiry:
        """Know a question from now on."""
        asking = self._known[said.id] = Inquiry(said, parent, now_s)
        return asking

    def spread(self, asking: Inquiry, now_s: float) -> None:
        """Ask all neighbours but the one who asks us."""
        payload = written(asking.said)
        for end in list(self._ends()):
            if end is not asking.parent:
                if end.say_of_session(payload, now_s):
                    asking.waiting.add(end)
                else:
                    asking.is_moving = True  # it could not be asked now
        self._look(asking, now_s)

    def hear_no(self, end: BrokerLink, said: NoSession, now_s: float) -> None:
        """Note that there is nothing behind a neighbour, or no more."""
        asking = self._known.get(said.id)
        if asking is not None:
            asking.is_moving |= said.is_moving
            self._gone(asking, end, now_s)

    def answered(self, end: BrokerLink, ask_id: InquiryId) -> Inquiry | None:
        """Note that a neighbour answers a question; None if nobody asked it, or another one answers."""
        asking = self._known.get(ask_id)
        if asking is None or (asking.source is None and end not in asking.waiting):
            return None
        if asking.source is None:
            asking.waiting.discard(end)
            asking.source = end
        return asking if asking.source is end else None

    def link_down(self, end: BrokerLink, now_s: float) -> None:
        """Forget what a lost neighbour asked, and wait no longer for its word."""
        for asking in self:
            if asking.parent is end:
                self._known.pop(asking.said.id, None)
            else:
                asking.is_moving |= asking.source is end
                self._gone(asking, end, now_s)

    def forget(self, asking: Inquiry) -> None:
        """Know a question no longer."""
        self._known.pop(asking.said.id, None)

    def forget_old(self, now_s: float) -> None:
        """Know those no longer that are old."""
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
        """Say no where everybody else did."""
        if asking.waiting or asking.source is not None or asking.has_come:
            return
        self.forget(asking)
        if asking.parent is None:
            self._concluded(asking, now_s)
        else:
            asking.parent.say_of_session(
                written(NoSession(id=asking.said.id, is_moving=asking.is_moving)), now_s
            )
