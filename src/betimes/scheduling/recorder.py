"""The recorder: effects and arrivals become the records of `model.telemetry`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from betimes.model.events import Event, EventId
from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import (
    Answered,
    Delivered,
    Dropped,
    Published,
    Queued,
    Received,
    Record,
    Sent,
    Subscribed,
    Unsubscribed,
)
from betimes.scheduling.effects import Deliver, Drop, Effect, Keep, Send

Sink = Callable[[Record], None]


class Recorder:
    """Turns effects and arrivals into records, and passes them to a sink.

    With `every` n, the driver asks for each event whether it is sampled: every n-th of its origin is, so
    all brokers with the same n record the same events. `offset_s` is added to the driver's clock to get the
    time of a record.
    """

    def __init__(self, sink: Sink, *, every: int = 1, offset_s: float = 0.0) -> None:
        self._sink = sink
        self.every = every
        self._share = 1.0 / every
        self._offset_s = offset_s

    def takes(self, event_id: EventId) -> bool:
        """Return whether an event is sampled."""
        return event_id.number % self.every == 0

    def published(
        self, broker: str, event: Event, wanted: int, now_s: float, *, stored: int, matching_s: float
    ) -> None:
        """Record that an event entered, and the number of subscriptions that match it."""
        self._about(
            Published,
            broker,
            event,
            now_s,
            topic=event.topic,
            size_kb=event.size_kb,
            deadline_s=event.deadline_s,
            wanted=wanted,
            content=json.dumps(dict(event.attributes), sort_keys=True),
            stored=stored,
            matching_s=matching_s,
        )

    def subscribed(self, subscription: Subscription, now_s: float) -> None:
        """Record that a subscription holds from now on, or still holds."""
        qos = subscription.qos
        self._sink(
            Subscribed(
                time_s=now_s + self._offset_s,
                broker=subscription.home,
                subscriber=subscription.id,
                pattern=subscription.pattern,
                filter=subscription.filter.text,
                delay_s_max=qos.delay_s_max,
                price=qos.price,
                reliability=qos.reliability or 0.0,
            )
        )

    def unsubscribed(self, broker: str, subscriber: str, pattern: str, now_s: float) -> None:
        """Record that a subscription has ended."""
        self._sink(
            Unsubscribed(time_s=now_s + self._offset_s, broker=broker, subscriber=subscriber, pattern=pattern)
        )

    def answered(
        self,
        broker: str,
        subscriber: str,
        pattern: str,
        *,
        asked: float,
        predicted_share: float,
        admitted: bool,
        reason: str,
        now_s: float,
    ) -> None:
        """Record the answer to a client that asked for an on-time share."""
        self._sink(
            Answered(
                time_s=now_s + self._offset_s,
                broker=broker,
                subscriber=subscriber,
                pattern=pattern,
                reliability=asked,
                predicted_share=predicted_share,
                admitted=admitted,
                reason=reason,
            )
        )

    def received(
        self, broker: str, neighbour: str, event: Event, *, age_s: float, transfer_s: float, now_s: float
    ) -> None:
        """Record that a message arrived by a link."""
        self._about(
            Received,
            broker,
            event,
            now_s,
            neighbour=neighbour,
            age_s=age_s,
            transfer_s=transfer_s,
            size_kb=event.size_kb,
        )

    def delivered(
        self,
        broker: str,
        event: Event,
        subscriber: str,
        *,
        age_s: float,
        delay_s_allowed: float,
        price: float,
        out_of_order: bool,
        now_s: float,
    ) -> None:
        """Record that a subscriber received an event."""
        self._about(
            Delivered,
            broker,
            event,
            now_s,
            subscriber=subscriber,
            age_s=age_s,
            delay_s_allowed=delay_s_allowed,
            price=price,
            out_of_order=out_of_order,
        )

    def effect(self, broker: str, effect: Effect, now_s: float) -> None:
        """Record a broker's decision: one record, or one for each subscriber or destination."""
        match effect:
            case Keep(event=event):
                self._about(
                    Queued, broker, event, now_s, age_s=effect.age_s, queue_length=effect.queue_length
                )
            case Send(message=message):
                self._about(
                    Sent,
                    broker,
                    message.event,
                    now_s,
                    neighbour=effect.neighbour,
                    age_s=message.age_s,
                    wait_s=effect.wait_s,
                    size_kb=message.event.size_kb,
                    destinations=len(message.destinations),
                )
            case Deliver(event=event):
                for subscription in effect.subscriptions:
                    self.delivered(
                        broker,
                        event,
                        subscription.id,
                        now_s=now_s,
                        age_s=effect.age_s,
                        delay_s_allowed=subscription.delay_s_allowed(event),
                        price=subscription.qos.price,
                        out_of_order=subscription.id in effect.out_of_order,
                    )
            case Drop(event=event):
                for destination, subscribers in zip(effect.destinations, effect.subscribers, strict=True):
                    self._about(
                        Dropped,
                        broker,
                        event,
                        now_s,
                        destination=destination,
                        age_s=effect.age_s,
                        reason=effect.reason.value,
                        subscribers=subscribers,
                    )

    def _about(
        self, kind: Callable[..., Record], broker: str, event: Event, now_s: float, **facts: Any
    ) -> None:
        """Pass a record of this kind about an event to the sink; the facts are its other columns."""
        self._sink(
            kind(
                time_s=now_s + self._offset_s,
                broker=broker,
                share=self._share,
                origin=event.id.origin,
                number=event.id.number,
                publisher=event.publisher,
                **facts,
            )
        )
