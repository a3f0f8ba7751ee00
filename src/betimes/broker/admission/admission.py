"""Admission by on-time share: a broker answers subscriptions that ask for a `reliability` (docs/promises.md).

It answers by the newest model that the control centre sent to `$betimes/model`, signed, and counts what the
newcomer would do to subscriptions that were admitted before. No two clocks are compared: a model is older or
newer than another by its own number, and its age is what has passed here since it came.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import mqtt5

from betimes.broker.admission.model_packets import (
    ALARM_BYTES_MAX,
    ALARM_TOPIC,
    MODEL_TOPIC,
    alarm_number,
    signature_of,
    unpacked_model,
)
from betimes.broker.core.extension import Decision, Extension
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.broker.storage.newest_numbers import NewestNumbers
from betimes.model.errors import BetimesError
from betimes.model.statistics import subscription_id
from betimes.model.subscriptions import Subscription
from betimes.model.user_properties import SIGNATURE
from betimes.mqtt.reason_codes import PublishCode

if TYPE_CHECKING:  # what it needs takes long to load
    from betimes.prediction.admission import Admission

log = logging.getLogger(__name__)

MODEL_NUMBER = "number of the newest model"  # when it was learned, in microseconds of the centre's clock
ALARM_NUMBER = "number of the newest alarm"
FRESH_S = 900.0  # after which an answer says how old the model is


@dataclass(frozen=True, slots=True)
class AdmissionAnswer:
    """The answer to a subscription that asks for an on-time share."""

    admitted: bool
    text: str
    predicted_share: float | None = None  # None: nothing was promised, and nothing refused


@dataclass(frozen=True, slots=True, eq=False)
class AdmissionModel:
    """A model that is worked out, and when the control centre learned it, on its own clock."""

    admission: Admission
    learned_at_s: float


def worked_out(payload: bytes) -> AdmissionModel:
    """Return the model in a payload, ready to answer by; this may take a while."""
    from betimes.prediction.admission import Admission

    statistics = unpacked_model(payload)
    return AdmissionModel(Admission(statistics), statistics.learned_at_s or 0.0)


class AdmissionRecorder(Protocol):
    """What writes down which subscriptions were admitted."""

    def answered(
        self, written: str, subscription: BrokerSubscription, answer: AdmissionAnswer, now_s: float
    ) -> None:
        """Record the answer to a subscription that asks for an on-time share."""


class AdmissionControl(Extension):
    """Which subscriptions one broker admits, and by which model."""

    def __init__(
        self,
        broker: str,
        secret: str,
        *,
        offer: Callable[[Publication, float], None],
        wake: Callable[[], None],
        newest: NewestNumbers,
        recorder: AdmissionRecorder | None = None,
    ) -> None:
        self.admitted = 0
        self.refused = 0
        self._to_learn: bytes | None = None  # the newest model, for the driver to work out
        self._offer = offer  # publishes an alarm to the clients here
        self._wake = wake  # tells the driver that a model has come
        self._recorder = recorder
        self._broker = broker
        self._secret = secret
        self._newest = newest  # models and alarms: an older one is refused, though it is signed
        self._model: AdmissionModel | None = None
        self._came_at_s = 0.0

    def take(self, packet: mqtt5.PublishPacket) -> PublishCode:
        """Take in what was published as a model; it counts once it is worked out."""
        if not self._is_signed(packet, packet.payload):
            log.warning("a model that the control centre did not sign is ignored")
            return PublishCode.NOT_AUTHORIZED
        self._to_learn = bytes(packet.payload)
        self._wake()
        return PublishCode.SUCCESS

    def take_model(self) -> bytes | None:
        """Return the newest model that is not worked out yet, once."""
        payload, self._to_learn = self._to_learn, None
        return payload

    def learn(self, model: AdmissionModel, promised: Iterable[BrokerSubscription], now_s: float) -> bool:
        """Answer by a new model from now on; False if it is no newer than any before.

        Subscriptions that were admitted before and that the model does not know yet stay admitted.
        """
        number = round(model.learned_at_s * 1e6)
        before = self._newest.get(MODEL_NUMBER)
        if number < before or (number == before and self._model is not None):
            return False
        self._newest.note(MODEL_NUMBER, number)
        self._model, self._came_at_s = model, now_s
        for subscription in promised:
            self.keep(subscription)
        return True

    def admit(self, subscription: BrokerSubscription, now_s: float) -> Decision | None:
        """Decide on a subscription that asks for an on-time share."""
        if not is_promised(subscription):
            return None
        answer = self.ask(subscription, now_s)
        if self._recorder is not None:
            self._recorder.answered(subscription.written, subscription, answer, now_s)
        return Decision(answer.admitted, f"{subscription.written}: {answer.text}")

    def subscribed(self, _written: str, subscription: BrokerSubscription, _now_s: float) -> None:
        """Count a promise that was given."""
        if is_promised(subscription):
            self.keep(subscription)

    def unsubscribed(self, _written: str, subscription: BrokerSubscription, _now_s: float) -> None:
        """Count a promise no longer."""
        if self._model is None or not is_promised(subscription):
            return
        name = self._subscription(subscription).id
        if name in self._model.admission:
            self._model.admission.remove(name)

    def control(self, packet: mqtt5.PublishPacket, topic: str, now_s: float) -> PublishCode | None:
        """Take in a model or an alarm of the control centre; all else is refused."""
        if topic == MODEL_TOPIC:
            return self.take(packet)
        if not topic.startswith(f"{ALARM_TOPIC}/") or len(packet.payload) > ALARM_BYTES_MAX:
            return PublishCode.NOT_AUTHORIZED
        if not self._is_signed(packet, topic.encode() + b"\0" + packet.payload):
            log.warning("an alarm that the control centre did not sign is ignored")
            return PublishCode.NOT_AUTHORIZED
        number = alarm_number(packet.payload)
        if number <= self._newest.get(ALARM_NUMBER):
            log.warning("an alarm that is no newer than the last is ignored")
            return PublishCode.NOT_AUTHORIZED
        self._newest.note(ALARM_NUMBER, number)
        plain = mqtt5.PublishPacket(topic, packet.payload, content_type="application/json")
        self._offer(Publication(plain, topic, born_s=now_s, origin=self._broker), now_s)
        return PublishCode.SUCCESS

    def _is_signed(self, packet: mqtt5.PublishPacket, data: bytes) -> bool:
        said = [value for name, value in packet.user_properties if name == SIGNATURE]
        right = signature_of(data, self._secret)
        return len(said) == 1 and hmac.compare_digest(said[0].encode(), right.encode())

    def ask(self, subscription: BrokerSubscription, now_s: float) -> AdmissionAnswer:
        """Return whether a subscription can be had with the on-time share that it asks for."""
        if self._model is None:
            return AdmissionAnswer(
                admitted=True, text="admitted without a promise: no model has come from a control centre yet"
            )
        try:
            verdict = self._model.admission.consider(self._subscription(subscription))
        except BetimesError as error:  # the model does not know this broker, or is full
            return AdmissionAnswer(admitted=True, text=f"admitted without a promise: {error}")
        age_s = now_s - self._came_at_s
        stale = f", by a model that came {age_s / 60.0:.0f} minutes ago" if age_s > FRESH_S else ""
        self.admitted += verdict.admitted
        self.refused += not verdict.admitted
        text = f"{'' if verdict.admitted else 'refused: '}{verdict.discreet_reason} on time{stale}"
        return AdmissionAnswer(admitted=verdict.admitted, text=text, predicted_share=verdict.predicted_share)

    def keep(self, subscription: BrokerSubscription) -> None:
        """Count a promise that was given."""
        counted = self._subscription(subscription)
        if self._model is not None and counted.id not in self._model.admission:
            with suppress(BetimesError):  # as in `ask`: then nothing was promised
                self._model.admission.add(counted)

    def _subscription(self, subscription: BrokerSubscription) -> Subscription:
        assert subscription.options is not None, "a subscription without options asks for no on-time share"
        return Subscription(
            id=subscription_id(subscription.session.client_id, subscription.pattern, self._broker),
            home=self._broker,
            filter=subscription.options.filter,
            qos=subscription.options.qos,
            pattern=subscription.pattern,
        )


def is_promised(subscription: BrokerSubscription) -> bool:
    """Tell whether a subscription asks for an on-time share."""
    return subscription.options is not None and bool(subscription.options.qos.reliability)
