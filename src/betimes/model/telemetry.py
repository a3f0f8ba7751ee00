"""What does a broker write down? The one contract between server, simulator and Spark.

Every record is flat and is one row of the table named after it. Times are seconds on the clock of the
broker that wrote the row; `age_s` is the message's own age, which is comparable everywhere. A busy broker
writes down only a share of all events, but of those everything: a row with share 0.01 stands for a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a message was not delivered. Whatever is dropped has one of these."""

    EXPIRED = "expired"  # its bound has passed
    HOPELESS = "hopeless"  # its bound has not passed, but it would (000, eq. 11)
    QUEUE_FULL = "queue_full"  # the broker holds as much as it may
    UNREACHABLE = "unreachable"  # no way to a destination is left
    BROKER_LOST = "broker_lost"  # it was in a broker that went away
    NOT_CONNECTED = "not_connected"  # its subscriber was away, and had not asked that it be kept
    SESSION_ENDED = "session_ended"  # its subscriber's session ended before it came for it
    TOO_LARGE = "too_large"  # its subscriber takes only smaller packets
    REFUSED = "refused"  # its publisher may not publish this, or not so much


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An event entered at a broker."""

    time_s: float
    broker: str
    share: float = 1.0  # of the events that are written down
    origin: str
    number: int
    publisher: str
    topic: str
    size_kb: float
    deadline_s: float
    wanted: int  # how many subscribers it matches
    content: str = "{}"  # its attributes, as JSON
    stored: int = 0  # subscriptions that the broker looked through
    matching_s: float = 0.0  # what that took


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A broker took a message in to forward it; `queue_length` counts it too."""

    time_s: float
    broker: str
    share: float = 1.0  # of the events that are written down
    origin: str
    number: int
    publisher: str
    age_s: float
    queue_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A broker gave a message to a link, after it waited."""

    time_s: float
    broker: str
    share: float = 1.0  # of the events that are written down
    neighbour: str
    origin: str
    number: int
    publisher: str
    age_s: float
    wait_s: float
    size_kb: float
    destinations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message came off a link; `transfer_s` is what the link took."""

    time_s: float
    broker: str
    share: float = 1.0  # of the events that are written down
    neighbour: str
    origin: str
    number: int
    publisher: str
    age_s: float
    transfer_s: float
    size_kb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A broker gave up a message for one destination broker; `subscribers` wanted it there."""

    time_s: float
    broker: str
    share: float = 1.0  # of the events that are written down
    destination: str
    origin: str
    number: int
    publisher: str
    age_s: float
    reason: str
    subscribers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A message reached a subscriber in time."""

    time_s: float
    broker: str
    share: float = 1.0  # of the events that are written down
    subscriber: str
    origin: str
    number: int
    publisher: str
    age_s: float
    delay_s_allowed: float
    price: float
    out_of_order: bool  # an event of this origin with a higher number came before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """Somebody wants something from now on; told again now and then, so that old files may go."""

    time_s: float
    broker: str
    share: float = 1.0  # all of them are written down
    subscriber: str
    pattern: str  # of topics, as written: what makes a subscriber's subscriptions different
    filter: str
    delay_s_max: float
    price: float
    reliability: float  # the on-time share asked for; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribed:
    """Somebody wants something no longer."""

    time_s: float
    broker: str
    share: float = 1.0  # all of them are written down
    subscriber: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Somebody asked for an on-time share, and was promised it or refused."""

    time_s: float
    broker: str
    share: float = 1.0  # all of them are written down
    subscriber: str
    pattern: str
    reliability: float  # the on-time share asked for
    predicted_share: float
    admitted: bool
    reason: str


Record = Published | Queued | Sent | Received | Dropped | Delivered | Subscribed | Unsubscribed | Answered
RECORD_TYPES: tuple[type[Record], ...] = (
    Published,
    Queued,
    Sent,
    Received,
    Dropped,
    Delivered,
    Subscribed,
    Unsubscribed,
    Answered,
)
