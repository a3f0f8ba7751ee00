"""Can a subscriber be promised the on-time share that it asks for?

The control centre learns from telemetry what the network does, and sends it to `$betimes/model`, signed with
a secret that it shares with the brokers. By the last model each broker answers those who ask for a
`reliability`: admitted, or refused with the share that is predicted, counting what the newcomer would do to
those who have a promise. No two clocks are compared: a model is older or newer than another by its own
number, and its age is what has passed here since it came.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mqtt5

from betimes.language.json.statistics import read_statistics, statistics_text
from betimes.model.errors import BetimesError
from betimes.model.statistics import NetworkStatistics, subscription_id
from betimes.model.subscriptions import Subscription
from betimes.model.user_properties import SIGNATURE

if TYPE_CHECKING:
    from betimes.broker.delivery.subscriptions import Grant
    from betimes.prediction.admission import Admission

log = logging.getLogger(__name__)

MODEL_TOPIC = "$betimes/model"
MODEL_BYTES_MAX = 64_000_000  # unpacked
FRESH_S = 900.0  # after which an answer says how old the model is

Acknowledged = mqtt5.PubAckReasonCode


class ModelError(BetimesError):
    """A model that is not one, or is too large."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to one who asks for a promise."""

    admitted: bool
    text: str
    predicted_share: float | None = None  # None: nothing was promised, and nothing refused


def packed_model(statistics: NetworkStatistics, secret: str) -> tuple[bytes, str]:
    """Return a model as it is sent to `$betimes/model`, and its signature."""
    payload = zlib.compress(statistics_text(statistics).encode())
    return payload, signature_of(payload, secret)


def signature_of(payload: bytes, secret: str) -> str:
    """Return what only one who knows the secret can say about a payload."""
    return hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model that is worked out: whom it admits, and when it was learned, as the control centre counts."""

    admission: Admission
    learned_at_s: float


def worked_out(payload: bytes) -> Model:
    """Return the model in a payload, ready to answer by; this may take a while."""
    from betimes.prediction.admission import Admission

    statistics = unpacked_model(payload)
    return Model(Admission(statistics), statistics.learned_at_s or 0.0)


def unpacked_model(payload: bytes) -> NetworkStatistics:
    """Return the model in a payload."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(payload, MODEL_BYTES_MAX)
        if not unpacking.eof:
            raise ModelError(f"not whole, or more than {MODEL_BYTES_MAX} bytes")
        return read_statistics(text.decode(), MODEL_TOPIC)
    except (zlib.error, UnicodeDecodeError) as error:
        raise ModelError(f"not a model: {error}") from None


class Promises:
    """What one broker promises, and by which model."""

    def __init__(self, broker: str, secret: str) -> None:
        self.admitted = 0
        self.refused = 0
        self.to_learn: bytes | None = None  # the newest model, for the driver to work out
        self.wake: Callable[[], None] = lambda: None  # tells the driver of it
        self._broker = broker
        self.secret = secret
        self.last_alarm = 0  # its number
        self._model: Model | None = None
        self._came_at_s = 0.0

    def take(self, packet: mqtt5.PublishPacket) -> Acknowledged:
        """Take in what was published as a model; it counts once it is worked out."""
        said = [value for name, value in packet.user_properties if name == SIGNATURE]
        right = signature_of(packet.payload, self.secret)
        if len(said) != 1 or not hmac.compare_digest(said[0].encode(), right.encode()):
            log.warning("a model that the control centre did not sign is ignored")
            return Acknowledged.NOT_AUTHORIZED
        self.to_learn = bytes(packet.payload)
        self.wake()
        return Acknowledged.SUCCESS

    def learn(self, model: Model, promised: Iterable[Grant], now_s: float) -> bool:
        """Answer by a new model from now on; False if it is no newer than the last.

        Who has a promise that the model does not know of yet keeps it.
        """
        if self._model is not None and model.learned_at_s <= self._model.learned_at_s:
            return False
        self._model, self._came_at_s = model, now_s
        for grant in promised:
            self.keep(grant)
        return True

    def ask(self, grant: Grant, now_s: float) -> Answer:
        """Say whether a subscription can be had with the on-time share that it asks for."""
        if self._model is None:
            return Answer(
                admitted=True, text="admitted without a promise: no model has come from a control centre yet"
            )
        try:
            verdict = self._model.admission.consider(self._subscription(grant))
        except BetimesError as error:  # the model does not know this broker, or is full
            return Answer(admitted=True, text=f"admitted without a promise: {error}")
        age_s = now_s - self._came_at_s
        stale = f", by a model that came {age_s / 60.0:.0f} minutes ago" if age_s > FRESH_S else ""
        self.admitted += verdict.admitted
        self.refused += not verdict.admitted
        text = f"{'' if verdict.admitted else 'refused: '}{verdict.reason} on time{stale}"
        return Answer(admitted=verdict.admitted, text=text, predicted_share=verdict.predicted_share)

    def keep(self, grant: Grant) -> None:
        """Count a promise that was given."""
        subscription = self._subscription(grant)
        if self._model is not None and subscription.id not in self._model.admission:
            with suppress(BetimesError):  # as in `ask`: then nothing was promised
                self._model.admission.add(subscription)

    def release(self, grant: Grant) -> None:
        """Count a promise no longer."""
        name = self._subscription(grant).id
        if self._model is not None and name in self._model.admission:
            self._model.admission.remove(name)

    def _subscription(self, grant: Grant) -> Subscription:
        assert grant.wish is not None, "who asks for nothing is promised nothing"
        return Subscription(
            id=subscription_id(grant.session.client_id, grant.pattern, self._broker),
            home=self._broker,
            filter=grant.wish.filter,
            qos=grant.wish.qos,
            pattern=grant.pattern,
        )


def is_promised(grant: Grant) -> bool:
    """Tell whether a subscription asks for an on-time share."""
    return grant.wish is not None and bool(grant.wish.qos.reliability)
