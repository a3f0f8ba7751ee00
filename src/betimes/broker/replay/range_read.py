"""Reading a range of the replay buffer: what was published between two positions (docs/resuming.md).

`resume-until` on a SUBSCRIBE states the end, and nothing stays subscribed; or it states how many messages
the client would like to read, or a time, and the answer is where that range would end. Every answer takes
bounded time: it looks at a limited number of messages and sends what finds room, the oldest first. The
positions in it state up to where that was everything; the client asks again from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import mqtt5

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.gaps import gap_message
from betimes.broker.delivery.publication import Publication, publication_of
from betimes.broker.delivery.session import Session
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.broker.replay.resume import (
    ORIGINS_MAX,
    ReplayHost,
    Resume,
    check_resume,
    few,
    position_properties,
)
from betimes.language.resume_tokens import read_resume_token
from betimes.matching.topics import TopicTree, shared_parts
from betimes.model.errors import TextError
from betimes.model.filters import EVERYTHING
from betimes.model.positions import NOTHING, Gap, Have
from betimes.model.telemetry import Reason
from betimes.model.user_properties import (
    ALL,
    BUFFERED,
    GAPS,
    KEPT,
    LOST,
    OUTSTANDING,
    PART,
    PUBLISHED,
    RESUME_AFTER,
    RESUME_UNTIL,
    UNKNOWN,
)
from betimes.mqtt.packet_batch import Kept
from betimes.mqtt.packets import OVERHEAD_BYTES
from betimes.mqtt.reason_codes import SubscribeCode
from betimes.mqtt.subscribe_options import SubscribeOptions
from betimes.replay.buffer import NOT_REMEMBERED, FoundMessage, RunPiece

FILTERS_MAX = 1_000  # of one range
LOOKED_AT_MAX = 2_048  # messages for one answer: no other client is served meanwhile
PLANNED_MAX = 10_000_000  # messages that one may like to read at once
BYTES_PLANNED_MAX = 10**12
MICROSECONDS_MAX = 10**17  # some three thousand years
HINT = "write the text of an $id, such as b1:200, one for each broker; with +1000, where so many end is told"


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """Where a range ends, by origin: None for what is here by now.

    With `most`, the client asks how far so many messages would reach, with `bytes_max`, so many bytes; with
    `since_us`, where what was published at a time, or later, begins.
    """

    ends: Mapping[str, int] | None = None
    most: int | None = None
    bytes_max: int | None = None
    since_us: int | None = None

    @property
    def is_plan(self) -> bool:
        """Tell whether nothing is to be sent."""
        return self.most is not None or self.since_us is not None


class RangeDelivery(Delivery):
    """A message of a range: it was counted, so it is sent however long it waits for the client's socket.

    It says when it was published, the same however often it is read.
    """

    __slots__ = ("_clock_ahead_s",)

    def __init__(
        self,
        publication: Publication,
        *,
        clock_ahead_s: float | None = None,
        subscription_ids: list[int] | None = None,
        told: bool = False,
    ) -> None:
        super().__init__(publication, subscription_ids=subscription_ids, told=told)
        self._clock_ahead_s = clock_ahead_s  # None: there is no time to tell

    def packet(
        self, now_s: float, *, again: bool = False, alias: int | None = None, alias_known: bool = False
    ) -> mqtt5.PublishPacket:
        """Return it as a packet, with the time of its publication."""
        packet = super().packet(now_s, again=again, alias=alias, alias_known=alias_known)
        if self._clock_ahead_s is not None:
            published_us = round((self.publication.born_s + self._clock_ahead_s) * 1e6)
            packet.user_properties.append((PUBLISHED, str(published_us)))
        return packet

    def too_late(self, now_s: float) -> bool:  # noqa: ARG002 -- as of any delivery
        """Say that it is of use."""
        return False


def read_until(properties: Sequence[tuple[str, str]]) -> Until | None:
    """Return where these user properties of a SUBSCRIBE say that a range ends; None if they do not."""
    texts = [value for name, value in properties if name == RESUME_UNTIL]
    if not texts:
        return None
    counts = [text for text in texts if text.startswith("+") and not text.endswith("B")]
    sizes = [text for text in texts if text.startswith("+") and text.endswith("B")]
    times = [text for text in texts if text.startswith("@")]
    most = _count(counts, "+1 to +{} messages", PLANNED_MAX) if counts else PLANNED_MAX if sizes else None
    bytes_max = _count([text[:-1] for text in sizes], "+1B to +{}B", BYTES_PLANNED_MAX) if sizes else None
    since_us = _count(times, "@0 to @{} microseconds", MICROSECONDS_MAX, least=0) if times else None
    if len(texts) > ORIGINS_MAX:
        raise TextError(texts[-1], 0, f"{RESUME_UNTIL} names at most {ORIGINS_MAX} brokers", HINT)
    ends: dict[str, int] = {}
    for text in texts:
        if text[0:1] in ("+", "@"):
            continue
        origin, found = read_resume_token(text)
        if origin in ends or found.above:
            raise TextError(text, 0, f"{RESUME_UNTIL} names each broker once, with one number", HINT)
        ends[origin] = found.floor
    return Until(ends=ends or None, most=most, bytes_max=bytes_max, since_us=since_us)


def _count(texts: Sequence[str], form: str, most: int, *, least: int = 1) -> int:
    digits = texts[0][1:]
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))
    if len(texts) > 1 or not is_number or not least <= int(digits) <= most:
        raise TextError(texts[0], 0, f"{RESUME_UNTIL} asks for {form.format(most)}, once", HINT)
    return int(digits)


class RangeReading:
    """The answer to one SUBSCRIBE that asks for a range."""

    def __init__(
        self,
        hub: ReplayHost,
        session: Session,
        packet: mqtt5.SubscribePacket,
        options: SubscribeOptions | None,
        resume: Resume | None,
        until: Until,
        now_s: float,
    ) -> None:
        self._hub = hub
        self._session = session
        self._packet = packet
        self._filter = EVERYTHING if options is None else options.filter
        self._patterns = [each.pattern for each in packet.topic_filters]
        self._topics: TopicTree[str] = TopicTree()
        self._have: Mapping[str, Have] = (None if resume is None else resume.have) or {}
        self._begins = {origin: had.floor for origin, had in self._have.items()}
        self._publications: list[Publication] = []
        self._gaps: list[Gap] = []  # that are told
        self._lost = 0  # messages, at most, that are known to have been published
        self._unknown = 0  # gaps of which it is unknown how many messages they had
        self._kept = 0  # messages up to the positions, of any topic, where the client asks for their number
        self._positions: dict[str, int] = {}
        replay = self._check(options, resume, until)
        rights = session.rights
        forbidden = rights is not None and not all(map(rights.may_subscribe, self._patterns))
        no = SubscribeCode.UNSPECIFIED_ERROR if hub.access_control.discreet else SubscribeCode.NOT_AUTHORIZED
        self.codes = [no if forbidden else SubscribeCode.GRANTED_QOS_AT_MOST_ONCE] * len(self._patterns)
        self.is_granted = not forbidden
        if not forbidden:
            self._find(replay, until, now_s)

    def _check(self, options: SubscribeOptions | None, resume: Resume | None, until: Until) -> ReplayBuffer:
        """Return where to look, or raise, as a TextError, what cannot be asked for."""
        if resume is not None and resume.have is None:
            raise TextError(RESUME_AFTER, 0, "a range that begins now is empty", HINT)
        if options is not None and (
            options.qos.delay_s_max < float("inf") or options.qos.reliability is not None
        ):
            raise TextError(RESUME_UNTIL, 0, "a range has a filter, but no max-delay and no reliability")
        if len(self._patterns) > FILTERS_MAX:
            problem = f"a range is read of at most {FILTERS_MAX} topic filters at once"
            raise TextError(self._patterns[FILTERS_MAX], 0, problem, "send several SUBSCRIBE packets")
        for pattern in self._patterns:
            shared_parts(pattern)  # as of any subscription
            self._topics.add(pattern, pattern)
        ends = {origin: Have(floor=number) for origin, number in (until.ends or {}).items()}
        for have in (self._have, ends):
            check_resume(self._hub, Resume(have=have), self._patterns, is_range=True)
        for origin, end in ends.items():
            if end.floor < self._begins.get(origin, 0):
                problem = f"this range ends before it begins, behind {origin}:{self._begins[origin]}"
                raise TextError(f"{origin}:{end.floor}", len(origin) + 1, problem, HINT)
        replay = self._hub.replay
        if replay is None:
            raise TextError(RESUME_UNTIL, 0, f"{self._hub.name} keeps nothing to read", HINT)
        return replay

    def told(self) -> list[tuple[str, str]]:
        """Return what the SUBACK says: how much comes, up to where that is all, and what is lost."""
        if not self.is_granted:
            return []
        replay, is_linked = self._hub.replay, not self._hub.network.is_alone
        is_whole = replay is not None and replay.is_whole(self._patterns, is_linked=is_linked)
        unknown = [(UNKNOWN, str(self._unknown))] if self._unknown else []
        return [
            (OUTSTANDING, str(len(self._publications))),
            (BUFFERED, ALL if is_whole else PART),
            (GAPS, str(len(self._gaps))),
            (LOST, str(self._lost)),
            *unknown,
            (KEPT, str(self._kept)),
            *position_properties(self._positions),
        ]

    def send(self, now_s: float) -> None:
        """Tell what is missing, and send what was found."""
        identifiers = None if self._packet.subscription_id is None else [self._packet.subscription_id]
        name, client_id, replay = self._hub.name, self._session.client_id, self._hub.replay
        ahead_s = None if replay is None else replay.clock_ahead_s
        for gap in self._gaps:
            message = gap_message(name, client_id, gap, now_s)
            self._session.offer(RangeDelivery(message, subscription_ids=identifiers), now_s)
        for each in self._publications:
            delivery = RangeDelivery(each, clock_ahead_s=ahead_s, subscription_ids=identifiers, told=True)
            self._session.offer(delivery, now_s)
        if replay is not None:
            replay.replayed += len(self._publications)
            replay.gaps_told += len(self._gaps)

    def _find(self, replay: ReplayBuffer, until: Until, now_s: float) -> None:
        patterns, begins = self._patterns, self._begins
        replay.close_run(self._session.client_id, None, now_s)
        ends = replay.buffer.settled() if until.ends is None else until.ends
        if until.since_us is not None:
            at_s = until.since_us / 1e6 - replay.clock_ahead_s
            self._positions = replay.buffer.published_before(patterns, at_s if until.since_us else -math.inf)
            return
        most, size = until.most or LOOKED_AT_MAX, until.bytes_max
        pieces, self._positions = replay.buffer.stretch(patterns, begins, ends, most, size)
        if until.is_plan:
            self._kept = sum(piece.last - piece.first + 1 for piece in pieces)
        else:
            self._take(pieces, now_s)
        gaps = replay.missing(patterns, begins, self._positions)
        self._gaps, self._lost = few(gaps), sum(gap.at_most for gap in gaps if gap.why != NOT_REMEMBERED)
        self._unknown = sum(gap.why == NOT_REMEMBERED for gap in gaps)

    def _take(self, pieces: Sequence[RunPiece[Kept]], now_s: float) -> None:
        """Take what is wanted of these while there is room; of the rest, the positions say nothing."""
        room = self._hub.limits.queue_bytes_max - self._session.queue_bytes
        is_full = False
        for piece in pieces:
            origin = piece.run.origin
            if is_full:
                self._positions[origin] = min(self._positions[origin], piece.first - 1)
                continue
            for each in self._wanted(piece, now_s):
                room -= each.size_bytes + OVERHEAD_BYTES
                if room < 0 and (self._publications or self._session.queue_bytes):
                    self._positions[origin] = each.number - 1
                    is_full = True
                    break
                self._publications.append(each)

    def _wanted(self, piece: RunPiece[Kept], now_s: float) -> Iterator[Publication]:
        """Yield what of a piece is on the topic, passes the filter, may be read and is not had."""
        run, rights, had = piece.run, self._session.rights, self._have.get(piece.run.origin, NOTHING)
        is_own = run.source == self._session.client_id
        if is_own and any(each.no_local for each in self._packet.topic_filters):
            return
        for number, item in enumerate(run.items, run.first):
            if number > piece.last:
                return
            if number < piece.first or item is None or number in had:
                continue
            topic = item.topic
            if not self._topics.match(topic):
                continue
            if rights is not None and not rights.may_read(topic):
                continue
            found = publication_of(FoundMessage(run.origin, number, run.born_s, run.source, item))
            if self._filter is not EVERYTHING and not self._filter.matches(found.attributes()):
                continue
            if now_s >= found.void_at_s:
                self._hub.lose(Delivery(found), Reason.EXPIRED, now_s)
                continue
            yield found
