"""What was published between two positions? Read from a broker's buffer, as often as one likes.

A position is a number for each origin, as in `$id`. `plan` says how far so many messages reach; `read` brings
all that is wanted between two positions, and what is missing there. The broker answers in parts, and from the
end of each the next is asked for (docs/resuming.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import mqtt5

from betimes.client.blocking.connection import DirectConnection, FailoverConnection
from betimes.client.errors import ConnectionLostError, SubscriptionRefusedError, meaning
from betimes.client.messages import read_gap
from betimes.language.resume_tokens import read_resume_token
from betimes.model.errors import TextError
from betimes.model.positions import Gap
from betimes.model.user_properties import (
    ALL,
    BUFFERED,
    FILTER,
    GAPS,
    KEPT,
    LOST,
    OUTSTANDING,
    POSITION,
    RESUME_AFTER,
    RESUME_UNTIL,
    UNKNOWN,
)
from betimes.mqtt.reason_codes import FAILED

PLANNED_MAX = 10_000_000  # messages of one plan

Positions = Mapping[str, int]  # the last number, by origin


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRequest:
    """What is read of a range."""

    topic: str
    filter: str | None = None


@dataclass(slots=True)
class RangePlan:
    """What a broker says of a range: how far it reaches, and what is kept of it."""

    positions: dict[str, int] = field(default_factory=dict)
    kept: int = 0  # messages up to there, of whatever topic
    lost: int = 0  # at most, that are known to have been published and are not kept any more
    unknown: int = 0  # gaps of which the broker does not know how many messages they had
    is_whole: bool = False  # all that is published comes to this broker, and is kept
    outstanding: int = 0  # messages that are sent with this answer
    gaps: list[Gap] = field(default_factory=list)
    gap_count: int = 0  # that are sent with this answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePart:
    """A part of a range: what came, and what is missing."""

    packets: list[mqtt5.PublishPacket]
    gaps: list[Gap] = field(default_factory=list)
    came_at_s: float = 0.0  # on the wall clock


class RangeReader(FailoverConnection):
    """Reads ranges at one of some brokers: at the next where one cannot be had, for so long."""

    def plan(
        self,
        wanted: RangeRequest,
        after: Positions,
        *,
        until: Positions | None = None,
        most: int = PLANNED_MAX,
        bytes_max: int | None = None,
    ) -> RangePlan:
        """Return how far so many messages reach, behind a position and up to another."""
        sizes = [] if bytes_max is None else [f"+{bytes_max}B"]
        ends = [f"+{most}", *sizes, *_tokens(until or {})]
        told, came = self.do(lambda line: _ask(line, wanted, after, ends))
        told.gaps = came.gaps
        reached = {origin: max(number, after.get(origin, 0)) for origin, number in told.positions.items()}
        told.positions = {**after, **reached}
        return told

    def begin(self, wanted: RangeRequest, since_us: int = 0) -> RangePlan:
        """Return the position in front of what was published since a time; 0: of all that is kept."""
        told, _ = self.do(lambda line: _ask(line, wanted, {}, [f"@{since_us}"]))
        return told

    def read(self, wanted: RangeRequest, after: Positions, until: Positions) -> Iterator[RangePart]:
        """Yield all that is wanted behind a position up to another, and what is missing there."""
        at = dict(after)
        while any(number > at.get(origin, 0) for origin, number in until.items()):
            told, came = self.do(partial(_ask, wanted=wanted, after=at, ends=_tokens(until)))
            yield came
            if all(number <= at.get(origin, 0) for origin, number in told.positions.items()):
                raise ConnectionLostError(f"{self.address}: the broker gets no further")
            at |= told.positions


def _ask(
    line: DirectConnection, wanted: RangeRequest, after: Positions, ends: Sequence[str]
) -> tuple[RangePlan, RangePart]:
    """Ask for a range, and return what the broker says of it and what it sends."""
    properties = [(RESUME_AFTER, token) for token in _tokens(after)]
    properties += [(RESUME_UNTIL, end) for end in ends]
    properties += [] if wanted.filter is None else [(FILTER, wanted.filter)]
    line.protocol.subscribe([mqtt5.TopicFilter(wanted.topic)], user_properties=properties)
    suback, *packets = line.receive()
    if not isinstance(suback, mqtt5.SubAckPacket):
        raise ConnectionLostError(f"the broker sent {type(suback).__name__} where SUBACK was due")
    code = suback.reason_codes[0]
    if code.value >= FAILED:
        raise SubscriptionRefusedError(wanted.topic, code.value, meaning(code.value), suback.reason_str or "")
    told = _told(suback.user_properties)
    if not told.positions:
        raise SubscriptionRefusedError(
            wanted.topic, 0x83, "not understood", "the broker knows no ranges: is it one of Betimes's?"
        )
    while len(packets) < told.outstanding + told.gap_count:
        packets += line.receive()
    gaps = (read_gap(each.payload) for each in packets[: told.gap_count])
    came = RangePart(
        packets=packets[told.gap_count :],  # gaps come first
        gaps=[gap for gap in gaps if gap is not None],
        came_at_s=time.time(),
    )
    return told, came


def _told(properties: Sequence[tuple[str, str]]) -> RangePlan:
    told = RangePlan()
    for name, value in properties:
        if name == POSITION:
            try:
                origin, had = read_resume_token(value)
            except TextError:
                continue
            told.positions[origin] = had.floor
        elif name == BUFFERED:
            told.is_whole = value == ALL
        elif name in (OUTSTANDING, GAPS, LOST, UNKNOWN, KEPT) and value.isascii() and value.isdigit():
            setattr(told, "gap_count" if name == GAPS else name, int(value))
    return told


def _tokens(positions: Positions) -> list[str]:
    return [f"{origin}:{number}" for origin, number in sorted(positions.items())]
