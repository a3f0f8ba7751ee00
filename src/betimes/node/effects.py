"""What can a node ask of its driver? Effects: the node decides, the driver performs."""

from __future__ import annotations

from dataclasses import dataclass

from betimes.model.events import Event, Message
from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import Reason


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keep:
    """A message was taken in to be forwarded; nothing to perform, but worth recording."""

    event: Event
    age_s: float
    queue_length: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Send:
    """Give this message to the link to that neighbour, which is busy until the driver says otherwise."""

    neighbour: str
    message: Message
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deliver:
    """Hand the event to these local subscribers; `out_of_order` names those who got a later one before."""

    event: Event
    age_s: float
    subscriptions: tuple[Subscription, ...]
    out_of_order: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drop:
    """The event is given up for these destination brokers, where so many subscribers wanted it."""

    event: Event
    age_s: float
    reason: Reason
    destinations: tuple[str, ...]
    subscribers: tuple[int, ...]


Effect = Keep | Send | Deliver | Drop
