"""Models and alarms of the control centre as MQTT messages, signed with a secret that the brokers share."""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from urllib.parse import quote

from betimes.language.json.statistics import read_statistics, statistics_text
from betimes.model.errors import BetimesError
from betimes.model.statistics import NetworkStatistics

MODEL_TOPIC = "$betimes/model"


MODEL_BYTES_MAX = 64_000_000  # unpacked


class ModelError(BetimesError):
    """A model that is not one, or is too large."""


def packed_model(statistics: NetworkStatistics, secret: str) -> tuple[bytes, str]:
    """Return a model as it is sent to `$betimes/model`, and its signature."""
    payload = zlib.compress(statistics_text(statistics).encode())
    return payload, signature_of(payload, secret)


def signature_of(payload: bytes, secret: str) -> str:
    """Return the signature of a payload: only a holder of the secret can make it."""
    return hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()


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


ALARM_TOPIC = "$betimes/alarm"
ALARM_BYTES_MAX = 10_000


def alarm_topic(home: str, subscriber: str) -> str:
    """Return the topic of alarms about a subscriber that does not get what was predicted.

    >>> alarm_topic("b1", "anna/1")
    '$betimes/alarm/b1/anna%2F1'
    """
    return f"{ALARM_TOPIC}/{quote(home, safe='')}/{quote(subscriber, safe='')}"


def signed_alarm(topic: str, facts: dict[str, object], number: int, secret: str) -> tuple[bytes, str]:
    """Return an alarm as it is sent, and its signature.

    The signature is of the topic and the payload, and the payload has a number that rises: a broker ignores
    an old alarm that is sent again.
    """
    payload = json.dumps(facts | {"number": number}).encode()
    return payload, signature_of(topic.encode() + b"\0" + payload, secret)


def alarm_number(payload: bytes) -> int:
    """Return an alarm's number; the payload was signed, so it is as `signed_alarm` makes it."""
    number = json.loads(payload)["number"]
    assert isinstance(number, int), "as signed_alarm makes it"
    return number
