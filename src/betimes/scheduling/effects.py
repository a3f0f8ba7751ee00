"""What can a node ask of its driver? Effects: the node decides, the driver performs.

Named tuples, because several are made for every message, and a frozen dataclass takes three times as long.
Where it counts they are `made`: to call the class takes twice as long again.
"""

from __future__ import annotations

from typing import NamedTuple

from betimes.model.events import Event, RoutedMessage
from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import Reason

made = tuple.__new__


class Keep(NamedTuple):
    """A message was taken in to be forwarded; nothing to perform, but worth recording."""

    event: Event
    age_s: float
    queue_length: int


class Send(NamedTuple):
    """Give this message to the link to that neighbour, which is busy until the driver says otherwise."""

    neighbour: str
    message: RoutedMessage
    wait_s: float
    ticket: int = 0  # what the driver names when the neighbour acknowledges it


class Deliver(NamedTuple):
    """Hand the event to these local subscribers; `out_of_order` names those who got a later one before."""

    event: Event
    age_s: float
    subscriptions: tuple[Subscription, ...]
    out_of_order: frozenset[str]


class Drop(NamedTuple):
    """The event is given up for these destination brokers, where so many subscribers wanted it."""

    event: Event
    age_s: float
    reason: Reason
    destinations: tuple[str, ...]
    subscribers: tuple[int, ...]


Effect = Keep | Send | Deliver | Drop
