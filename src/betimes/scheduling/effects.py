"""The effects of a node: the node decides, the driver performs.

Named tuples, because several are created for every message, and a frozen dataclass takes three times as
long. Hot paths create them with `made`: calling the class takes twice as long again.
"""

from __future__ import annotations

from typing import NamedTuple

from betimes.model.events import Event, RoutedMessage
from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import Reason

made = tuple.__new__


class Keep(NamedTuple):
    """A message was queued for forwarding; the driver only records it."""

    event: Event
    age_s: float
    queue_length: int


class Send(NamedTuple):
    """Give this message to the link to that neighbour; it is busy until the driver reports otherwise."""

    neighbour: str
    message: RoutedMessage
    wait_s: float
    ticket: int = 0  # the driver names it when the neighbour acknowledges the message


class Deliver(NamedTuple):
    """Give the event to these local subscribers; those in `out_of_order` already have a later event."""

    event: Event
    age_s: float
    subscriptions: tuple[Subscription, ...]
    out_of_order: frozenset[str]


class Drop(NamedTuple):
    """The event is dropped for these destination brokers, with the number of subscribers at each."""

    event: Event
    age_s: float
    reason: Reason
    destinations: tuple[str, ...]
    subscribers: tuple[int, ...]


Effect = Keep | Send | Deliver | Drop
