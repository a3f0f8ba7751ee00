"""The records of telemetry: the one contract between broker, simulator and Spark.

Every record is flat and is one row of the table named after it. Times are seconds on the clock of the
broker that wrote the row; `age_s` is the message's own age, which is comparable everywhere. A busy broker
samples a share of all events, but of those it records everything: a row with share 0.01 represents a
hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a message was not delivered. Every dropped message has one of these reasons."""

    EXPIRED = "expired"  # its bound has passed
    HOPELESS = "hopeless"  # its bound has not passed, but would before delivery (000, eq. 11)
    QUEUE_FULL = "queue_full"  # the broker's queue is at its limit
    NO_ROUTE = "no_route"  # no route to a destination is left: a link or broker on the way is down
    BROKER_LOST = "broker_lost"  # it was in a broker that failed
    NOT_CONNECTED = "not_connected"  # its subscriber was away, without a durable session
    SESSION_ENDED = "session_ended"  # its subscriber's session ended before the delivery
    TOO_LARGE = "too_large"  # its subscriber accepts only smaller packets
    REFUSED = "refused"  # its publisher is not allowed to publish this, or so much


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRecord:
    """The first columns of every record. Those of a subscription are all recorded: their share is 1."""

    time_s: float
    broker: str
    share: float = 1.0  # share of the events that is sampled


@dataclass(frozen=True, slots=True, kw_only=True)
class Published(BrokerRecord):
    """An event entered at a broker."""

    origin: str
    number: int
    publisher: str
    topic: str
    size_kb: float
    deadline_s: float
    wanted: int  # number of subscribers that it matches
    content: str = "{}"  # its attributes, as JSON
    stored: int = 0  # number of subscriptions that the broker searched
    matching_s: float = 0.0  # time of that search


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued(BrokerRecord):
    """A broker queued a message to forward it; `queue_length` counts it too."""

    origin: str
    number: int
    publisher: str
    age_s: float
    queue_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent(BrokerRecord):
    """A broker gave a message to a link, after it waited."""

    neighbour: str
    origin: str
    number: int
    publisher: str
    age_s: float
    wait_s: float
    size_kb: float
    destinations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(BrokerRecord):
    """A message arrived by a link; `transfer_s` is the time on the link."""

    neighbour: str
    origin: str
    number: int
    publisher: str
    age_s: float
    transfer_s: float
    size_kb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(BrokerRecord):
    """A broker dropped a message for one destination broker; `subscribers` wanted it there."""

    destination: str
    origin: str
    number: int
    publisher: str
    age_s: float
    reason: str
    subscribers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered(BrokerRecord):
    """A message reached a subscriber in time."""

    subscriber: str
    origin: str
    number: int
    publisher: str
    age_s: float
    delay_s_allowed: float
    price: float
    out_of_order: bool  # an event of this origin with a higher number came before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed(BrokerRecord):
    """A subscription began; repeated regularly, so that old files can be deleted."""

    subscriber: str
    pattern: str  # of topics, as written: it distinguishes a subscriber's subscriptions
    filter: str
    delay_s_max: float
    price: float
    reliability: float  # the requested on-time share; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribed(BrokerRecord):
    """A subscription ended."""

    subscriber: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(BrokerRecord):
    """The answer to a request for an on-time share."""

    subscriber: str
    pattern: str
    reliability: float  # the requested on-time share
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
