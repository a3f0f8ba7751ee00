"""Resuming a subscription: what a subscriber missed while it was away (003, section 5.1).

What was kept is looked through in turns, between which other clients are served (`missed_scan.py`). Resuming
itself is one step, in which nothing else happens: what came meanwhile is added, all of it goes into the
session's queue, and the live subscription begins with what the client has as its floor. So no message comes
twice, and none is left out. The SUBACK states first how much is to come; then come the gaps, and then what
was missed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Protocol

from betimes.broker.access.authentication import AccessControl
from betimes.broker.delivery.counters import Counters
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.fan_out import bound_s_of, delivery_of, merged_delivery
from betimes.broker.delivery.gaps import gap_message
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.delivery.telemetry_recorder import TelemetryRecorder
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.broker.replay.missed_scan import MissedScan
from betimes.broker.replay.recent_log import Selection, are_in_order
from betimes.language.resume_tokens import HINT, read_resume_token
from betimes.matching.topics import TopicTree
from betimes.model.errors import TextError
from betimes.model.filters import EVERYTHING
from betimes.model.positions import Gap, Have
from betimes.model.server_settings import Limits
from betimes.model.telemetry import Reason
from betimes.model.user_properties import (
    ALL,
    BUFFERED,
    NOW,
    OUTSTANDING,
    POSITION,
    RESUME_AFTER,
    RESUME_LATE,
)
from betimes.mqtt.packets import OVERHEAD_BYTES

ORIGINS_MAX = 1_000  # that one subscriber names, or is told
GAPS_MAX = 100  # that are told apart
# Numbers begin with the clock's microseconds: so far ahead is a position of a life whose clock was ahead.
CLOCK_BACK_MIN, CLOCK_BACK_MAX = 10**6, 86_400 * 10**6
CLOCK_BACK = "the broker restarted with its clock set back"
AHEAD_MAX = 10**9  # numbers by which another broker may be ahead of what came here
AT_ONCE_BYTES_MAX = 1_000_000  # of missed messages that are sent in one piece
RESUMED_FILTERS_MAX = 20  # of one SUBSCRIBE: they become live in one step
_number, _born_s = attrgetter("number"), attrgetter("born_s")


class KnownBrokers(Protocol):
    """The network, as resuming needs it."""

    @property
    def is_alone(self) -> bool:
        """Tell whether there are no other brokers."""

    def brokers(self) -> Collection[str]:
        """Return the names of all brokers that are known."""

    def first_number_of(self, origin: str) -> int:
        """Return about where the numbers of a broker's publications begin."""

    def neighbours_down(self) -> list[str]:
        """Return the configured neighbours to which there is no link now."""


class ReplayHost(Protocol):
    """The hub, as resuming and reading ranges need it."""

    name: str
    access_control: AccessControl
    limits: Limits
    counters: Counters
    recorder: TelemetryRecorder | None  # writes telemetry
    replay: ReplayBuffer | None  # keeps messages for clients that come back

    @property
    def network(self) -> KnownBrokers:
        """Return the other brokers."""

    @property
    def next_number(self) -> int:
        """Return the number of the next publication."""

    def lose(self, delivery: Delivery, reason: Reason, now_s: float) -> None:
        """Note that a client does not get something."""


class NotYetError(TextError):
    """Something that this broker cannot know so soon; to ask again may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """What a client states that comes back; without `have` it begins now, and may come back later."""

    have: Mapping[str, Have] | None = None
    late_too: bool = False
    unknown: tuple[Gap, ...] = ()  # what the client may have missed of a life that is not remembered


class LateDelivery(Delivery):
    """A message that the client wants even when it is too late: only its expiry ends it."""

    __slots__ = ()

    def too_late(self, now_s: float) -> bool:
        """Say whether it is of no use any more."""
        return now_s >= self.publication.void_at_s

    def dies_at_s(self) -> float:
        """Return when it becomes of no use."""
        return self.publication.void_at_s


def read_resume(properties: Iterable[tuple[str, str]]) -> Resume | None:
    """Return what these user properties of a SUBSCRIBE say of coming back; None if nothing."""
    tokens = [value for name, value in properties if name == RESUME_AFTER]
    late = [value for name, value in properties if name == RESUME_LATE]
    if late and (late != [ALL] or not tokens):
        raise TextError(late[0], 0, f"{RESUME_LATE} goes with {RESUME_AFTER}, and is {ALL} or left out")
    if not tokens:
        return None
    if tokens == [NOW]:
        return Resume(late_too=bool(late))
    if len(tokens) > ORIGINS_MAX:
        raise TextError(tokens[-1], 0, f"{RESUME_AFTER} names at most {ORIGINS_MAX} brokers", HINT)
    have: dict[str, Have] = {}
    for token in tokens:
        origin, had = read_resume_token(token)
        if origin in have:
            raise TextError(token, 0, f"{RESUME_AFTER} names this broker twice", HINT)
        have[origin] = had
    return Resume(have=have, late_too=bool(late))


def check_resume(
    hub: ReplayHost, resume: Resume, patterns: Sequence[str], *, is_range: bool = False
) -> Resume:
    """Refuse, as a TextError, positions that no broker can have sent, and what cannot be resumed here.

    Return what to go by: a position of an earlier life of this broker, whose clock was ahead, is replaced by
    the present one, and a gap says that what was published before is lost to the client.
    """
    for pattern in patterns:
        if pattern.startswith("$share/"):
            raise TextError(pattern, 0, f"a shared subscription cannot resume: leave out {RESUME_AFTER}")
    if resume.have is None:
        return resume
    if len(patterns) > RESUMED_FILTERS_MAX and not is_range:
        problem = f"at most {RESUMED_FILTERS_MAX} topic filters resume in one SUBSCRIBE"
        raise TextError(patterns[RESUMED_FILTERS_MAX], 0, problem, "send several SUBSCRIBE packets")
    if hub.replay is None:
        raise TextError(RESUME_AFTER, 0, f"{hub.name} keeps nothing to resume from", HINT)
    highest = hub.replay.buffer.highest()
    known = {hub.name, *highest, *hub.network.brokers()}
    for origin, had in list(resume.have.items()):
        text = f"{origin}:{had.highest}"
        if origin not in known:
            missing = hub.network.neighbours_down()
            if missing:
                problem = f"{hub.name} does not know {origin} yet: it waits for its link to {missing[0]}"
                raise NotYetError(text, 0, problem, "ask again later, or another broker")
            raise TextError(text, 0, f"no broker called {origin} is known at {hub.name}", HINT)
        if origin == hub.name:
            last = hub.replay.last_number
        else:  # it may be ahead of what has come here, but not by so much
            last = max(highest.get(origin, 0), hub.network.first_number_of(origin)) + AHEAD_MAX
        ahead = had.highest - last
        if origin == hub.name and not is_range and CLOCK_BACK_MIN <= ahead <= CLOCK_BACK_MAX:
            gap = Gap(origin=origin, first=0, last=last, at_most=last, why=CLOCK_BACK)
            resume = replace(
                resume, have={**resume.have, origin: Have(floor=last)}, unknown=(*resume.unknown, gap)
            )
        elif ahead > 0:
            problem = f"this is from the future: {origin} has not numbered so far"
            raise TextError(text, len(origin) + 1, problem, HINT)
    return resume


class Resumption:
    """The answer to one SUBSCRIBE of a client that comes back.

    `steps` looks through what is kept, in as many turns as that takes. `finish` is the one step of resuming:
    behind it the caller registers the subscriptions, and sends the SUBACK and what was missed.
    """

    def __init__(
        self,
        hub: ReplayHost,
        session: Session,
        subscriptions: Sequence[BrokerSubscription],
        resume: Resume,
    ) -> None:
        self._hub = hub
        self._session = session
        self._grants = subscriptions
        self._resume = resume
        self._gaps: list[Gap] = []
        self._positions: dict[str, int] = {}
        self._deliveries: list[Delivery] = []
        self._selections: list[Selection] = []  # instead, where that is enough
        self._scan: MissedScan | None = None
        self._by_topic: TopicTree[BrokerSubscription] = TopicTree()
        for each in subscriptions:
            self._by_topic.add(each.pattern, each)

    def steps(self, now_s: Callable[[], float]) -> Iterator[int]:
        """Find what is to be sent, the newest first: there may be no room for all that was missed."""
        replay, have, session = self._hub.replay, self._resume.have, self._session
        if replay is None or have is None or not self._grants:
            return
        replay.close_run(session.client_id, None, now_s())
        options = self._grants[0].options  # all of one SUBSCRIBE have the same
        owed = {(each.publication.origin, each.publication.number) for each in session.owed()}
        rights = session.rights

        def accept(publication: Publication) -> bool:
            if owed and (publication.origin, publication.number) in owed:
                return False
            return rights is None or rights.may_read(publication.topic)

        scan = self._scan = MissedScan(
            replay,
            [each.pattern for each in self._grants],
            EVERYTHING if options is None else options.filter,
            have,
            accept,
            self._hub.limits.queue_bytes_max - session.queue_bytes,
        )
        yield from scan.steps()
        if scan.reads_blocks and self._takes_selections(scan.selections):
            return
        yield from scan.read_selections()
        found, scan.publications = in_order(scan.publications, len(self._grants) > 1), []
        for number, publication in enumerate(found):
            self._add(publication, now_s())
            if number % 100 == 99:
                yield 50

    def finish(self, now_s: float) -> None:
        """Look at what came since; nothing else may happen before the subscriptions are registered."""
        replay, scan = self._hub.replay, self._scan
        self._gaps = list(self._resume.unknown)
        if replay is None:
            self._positions = {self._hub.name: self._hub.next_number - 1}
            return
        replay.close_run(self._session.client_id, None, now_s)
        replay.buffer.returned(self._session.client_id)
        self._positions = replay.buffer.settled()
        if scan is None:
            return
        self._gaps += scan.finish()
        is_quick = scan.reads_blocks and not self._deliveries
        if is_quick and self._takes_selections(scan.selections):
            self._find_late(scan.selections, now_s)
        else:
            for _ in scan.read_selections():
                pass
            for each in in_order(scan.publications, len(self._grants) > 1):
                self._add(each, now_s)
        self._gaps += scan.unsent()
        self._scan = None

    @property
    def is_whole(self) -> bool:
        """Tell whether all that is published, wherever, would be here."""
        replay, is_linked = self._hub.replay, not self._hub.network.is_alone
        patterns = [each.pattern for each in self._grants]
        return replay is not None and replay.is_whole(patterns, is_linked=is_linked)

    def told(self) -> list[tuple[str, str]]:
        """Return what the SUBACK says: how much is to come, where that ends, and whether it may be all."""
        told = [(OUTSTANDING, str(self._outstanding)), (BUFFERED, ALL if self.is_whole else "part")]
        return told + position_properties(self._positions)

    @property
    def _outstanding(self) -> int:
        return len(self._deliveries) + sum(map(len, self._selections))

    def reason(self) -> str:
        """Return what a person should know."""
        if self.is_whole or self._resume.have is None:
            return ""
        return f"{self._hub.name} keeps only a part of what is published: something may be missing"

    def send(self, now_s: float) -> None:
        """Tell what is missing, and let all that was missed join the line."""
        gaps, replay = few(self._gaps), self._hub.replay
        if replay is not None and self._resume.have is not None:
            replay.resumed += 1
            replay.replayed += self._outstanding
            replay.gaps_told += len(gaps)
        identifiers = [each.identifier for each in self._grants if each.identifier is not None]
        for gap in gaps:
            message = gap_message(self._hub.name, self._session.client_id, gap, now_s)
            self._session.offer(Delivery(message, subscription_ids=identifiers[:1] or None), now_s)
        self._session.offer_all(self._deliveries, now_s)
        if self._selections:
            self._send_selections(self._grants[0], now_s)

    def _send_selections(self, subscription: BrokerSubscription, now_s: float) -> None:
        """Send what was found as one piece; what cannot go so joins the line one by one."""
        replay, connection, recorder = self._hub.replay, self._session.ready(), self._hub.recorder
        assert replay is not None, "what is sent was kept"
        names, pieces, count = replay.origins(), list[bytes](), 0
        while connection is not None and count < len(self._selections):
            data, longest = self._selections[count].told(names, now_s)
            if longest > connection.packet_bytes_max:
                break
            pieces.append(data)
            count += 1
        sent, left = self._selections[:count], self._selections[count:]
        if connection is not None and sent:
            messages = sum(map(len, sent))
            connection.send_batch(b"".join(pieces), messages)
            price = 1.0 if subscription.options is None else subscription.options.qos.price
            self._hub.counters.premium += messages * (price - 1.0)
        every = 0 if recorder is None else recorder.every
        recorded = [selection.where(selection.numbers % every == 0) for selection in sent] if every else []
        for each in [each for selection in recorded for each in selection.publications()]:
            self._session.note(delivery_of(each, subscription, retain=False), now_s)
        for each in [each for selection in left for each in selection.publications()]:
            self._session.offer(self._delivery(each, [subscription]), now_s)

    def _takes_selections(self, selections: Sequence[Selection]) -> bool:
        """Tell whether what was found can be sent in a way that is quick for thousands of messages."""
        session, subscription = self._session, self._grants[0]
        connection = session.ready()
        if len(self._grants) > 1 or connection is None or not connection.takes_plain or session.owed():
            return False
        if session.rights is not None or subscription.no_local or subscription.identifier is not None:
            return False
        if sum(each.size_bytes for each in selections) > AT_ONCE_BYTES_MAX:
            return False
        taken = sum(each.size_bytes + 2 * OVERHEAD_BYTES * len(each) for each in selections)
        if taken > self._hub.limits.queue_bytes_max - session.queue_bytes:
            return False
        return are_in_order(selections) and all(each.is_plain(subscription.qos) for each in selections)

    def _find_late(self, selections: Sequence[Selection], now_s: float) -> None:
        """Sort out what is too late by now."""
        subscription, takes_late = self._grants[0], self._resume.late_too
        for selection in selections:
            late = selection.void(now_s) if takes_late else selection.late(now_s, bound_s_of(subscription))
            for each in selection.where(late).publications():
                self._add(each, now_s)
            self._selections.append(selection.where(~late))

    def _add(self, publication: Publication, now_s: float) -> None:
        """Take one message that was missed into what is to be sent, unless it is too late by now."""
        own = publication.publisher == self._session.client_id
        wanting = [each for each in self._by_topic.match(publication.topic) if not (own and each.no_local)]
        if not wanting:
            return
        delivery = self._delivery(publication, wanting)
        if delivery.too_late(now_s):
            self._hub.lose(delivery, Reason.EXPIRED, now_s)
        else:
            self._deliveries.append(delivery)

    def _delivery(self, publication: Publication, subscriptions: list[BrokerSubscription]) -> Delivery:
        kind = LateDelivery if self._resume.late_too else Delivery
        if self._hub.recorder is not None:
            publication.is_recorded = self._hub.recorder.takes(publication.id)
        if len(subscriptions) > 1:
            return merged_delivery(publication, subscriptions, kind)
        return delivery_of(publication, subscriptions[0], retain=False, kind=kind)


def in_order(publications: Sequence[Publication], by_origin: bool) -> list[Publication]:
    """Return messages in order for each origin: one origin behind the other, or by when they were born."""
    flows: dict[str, list[Publication]] = {}
    for each in publications:
        flows.setdefault(each.origin, []).append(each)
    for flow in flows.values():
        flow.sort(key=_number)  # some may have been overtaken on their way
    if by_origin:
        return [each for origin in sorted(flows) for each in flows[origin]]
    return list(heapq.merge(*flows.values(), key=_born_s))


def position_properties(positions: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return positions as the user properties of a SUBACK."""
    return [(POSITION, f"{origin}:{number}") for origin, number in list(positions.items())[:ORIGINS_MAX]]


def few(gaps: list[Gap]) -> list[Gap]:
    """Return so many gaps at most: where there are more, those of one origin and reason become one."""
    if len(gaps) <= GAPS_MAX:
        return gaps
    joined: dict[tuple[str, str], Gap] = {}
    for gap in gaps:
        known = joined.get((gap.origin, gap.why), gap)
        at_most = gap.at_most if known is gap else known.at_most + gap.at_most
        first, last = min(known.first, gap.first), max(known.last, gap.last)
        joined[gap.origin, gap.why] = Gap(
            origin=gap.origin, first=first, last=last, at_most=at_most, why=gap.why
        )
    return list(joined.values())
