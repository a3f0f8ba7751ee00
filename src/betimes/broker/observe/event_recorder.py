"""Telemetry of a live broker: what it records of publications, deliveries and subscriptions.

The records are those of `model.telemetry`, made by the recorder that the simulator uses too; of a busy
broker's events only some are written down, but of those everything. Deliveries are noted when they are sent;
what came out of order is told by the events that are written down.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from betimes.broker.admission.admission import AdmissionAnswer
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.live_event import deadline_s_of, live_event
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.model.bounded_map import BoundedMap
from betimes.model.filters import EVERYTHING
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import Reason
from betimes.scheduling.effects import Drop
from betimes.scheduling.recorder import Recorder

NOTHING_ASKED = QoS()
FLOWS_MAX = 100_000  # of which the latest number is remembered


class EventRecorder:
    """Writes down what happens at one broker."""

    def __init__(
        self, broker: str, recorder: Recorder, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.recorder = recorder
        self.every = recorder.every
        self.takes = recorder.takes  # whether what becomes of an event is written down
        self._broker = broker
        self._clock = clock  # for what matching takes
        self._began_s = self._matching_s = 0.0
        self._latest: BoundedMap[tuple[str, str], int] = BoundedMap(FLOWS_MAX)  # by client and origin

    def begin(self) -> None:
        """Note that matching begins of something that is written down."""
        self._began_s = self._clock()

    def matched(self) -> None:
        """Note that its local subscribers were found and served."""
        self._matching_s = self._clock() - self._began_s

    def published(self, publication: Publication, wanted: int, stored: int, now_s: float) -> None:
        """Note that something entered here, which so many want, of so many subscriptions."""
        event = live_event(publication)
        matching_s = self._matching_s
        self.recorder.published(self._broker, event, wanted, now_s, stored=stored, matching_s=matching_s)

    def subscribed(self, written: str, subscription: BrokerSubscription, now_s: float) -> None:
        """Record a subscription, new or still there."""
        options = subscription.options
        record = Subscription(
            id=subscription.session.client_id,
            home=self._broker,
            filter=EVERYTHING if options is None else options.filter,
            qos=NOTHING_ASKED if options is None else options.qos,
            pattern=written,
        )
        self.recorder.subscribed(record, now_s)

    def answered(
        self, written: str, subscription: BrokerSubscription, answer: AdmissionAnswer, now_s: float
    ) -> None:
        """Record that a subscription was admitted with an on-time share, or refused."""
        if answer.predicted_share is None or subscription.options is None:
            return
        self.recorder.answered(
            self._broker,
            subscription.session.client_id,
            written,
            asked=subscription.options.qos.reliability or 0.0,
            predicted_share=answer.predicted_share,
            admitted=answer.admitted,
            reason=answer.text,
            now_s=now_s,
        )

    def unsubscribed(self, client_id: str, written: str, now_s: float) -> None:
        """Record that a subscription is gone."""
        self.recorder.unsubscribed(self._broker, client_id, written, now_s)

    def sent(self, client_id: str, delivery: Delivery, now_s: float) -> None:
        """Note that a client was sent what it wanted."""
        publication = delivery.publication
        flow, number = (client_id, publication.origin), publication.number
        latest = self._latest.get(flow, 0)
        self._latest.note(flow, max(latest, number))
        self.recorder.delivered(
            self._broker,
            live_event(publication),
            client_id,
            age_s=now_s - publication.born_s,
            delay_s_allowed=min(delivery.bound_s, deadline_s_of(publication)),
            price=delivery.price,
            out_of_order=latest > number,
            now_s=now_s,
        )

    def lost(self, publication: Publication, reason: Reason, now_s: float) -> None:
        """Note that one client does not get what it wanted."""
        drop = Drop(
            event=live_event(publication),
            age_s=now_s - publication.born_s,
            reason=reason,
            destinations=(self._broker,),
            subscribers=(1,),
        )
        self.recorder.effect(self._broker, drop, now_s)
