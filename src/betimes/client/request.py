"""What is asked of the broker? Wishes and attributes as user properties, checked before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from betimes.language.filters.parse import parse_filter
from betimes.language.guarantees import (
    ANY,
    read_advertisement,
    read_bandwidth_kb_per_s,
    read_latency_s_max,
)
from betimes.language.quantities import read_duration_s
from betimes.language.resume_tokens import read_resume_token
from betimes.language.suggestions import did_you_mean
from betimes.model.errors import SettingError, TextError
from betimes.model.events import Value
from betimes.model.user_properties import (
    ADVERTISE,
    ATTRIBUTES_MAX,
    BANDWIDTH,
    DEADLINE,
    FILTER,
    IMPORTANCE,
    LATENCY,
    MAX_DELAY,
    NOW,
    OWN,
    PRICE,
    RELIABILITY,
)

TEXT_BYTES_MAX = 65_535  # what MQTT's length of two bytes can say
QUALITIES = (0, 1, 2)


class Mode(StrEnum):
    """What becomes of what is published while a subscriber is away."""

    NONDURABLE = "nondurable"  # it is lost
    SEMI_DURABLE = "semi-durable"  # it is asked for again, at whatever broker, as far as that kept it
    DURABLE = "durable"  # the broker keeps all of it, and hands it to the broker where we come back


Duration = str | float  # "250ms", or seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeCall:
    """What one subscription asks for."""

    topic: str
    qos: int
    delay_s_max: float
    mode: Mode
    late_too: bool
    after: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]


def ask(
    topic: str,
    *,
    filter: str | None = None,  # noqa: A002 -- as in the user property
    max_delay: Duration | None = None,
    price: float = 1.0,
    reliability: float | None = None,
    bandwidth: str | None = None,
    latency: Duration | None = None,
    qos: int = 0,
    mode: str = Mode.NONDURABLE,
    after: Iterable[str] = (),
    late_too: bool = False,
) -> SubscribeCall:
    """Return a subscription as it goes to the broker; a mistake in it is told at its place.

    The price always goes along: who asks for something of Betimes's is told each message's id and age.
    """
    properties = {PRICE: _number("price", price, math.inf)}
    if filter is not None:
        properties[FILTER] = checked_text("filter", filter)
        parse_filter(filter)
    if max_delay is not None:
        properties[MAX_DELAY] = duration_text("max_delay", max_delay)
    if reliability is not None:
        properties[RELIABILITY] = _number("reliability", reliability, 1.0)
    if bandwidth is not None:
        properties[BANDWIDTH] = _stated("bandwidth", bandwidth, "write 20KB/s, or any")
        read_bandwidth_kb_per_s(bandwidth)
    if latency is not None:
        is_text = isinstance(latency, str)
        properties[LATENCY] = (
            _stated("latency", latency, "write 100ms") if is_text else duration_text("latency", latency)
        )
        read_latency_s_max(properties[LATENCY])
    if mode not in tuple(Mode):
        raise SettingError("mode", mode, "is unknown", did_you_mean(str(mode), Mode, "modes"))
    tokens = tuple(each for each in ((after,) if isinstance(after, str) else after) if each != NOW)
    if mode != Mode.SEMI_DURABLE and (tokens or late_too):
        raise SettingError("mode", mode, "only semi-durable subscriptions resume", 'mode="semi-durable"')
    if mode == Mode.DURABLE and qos == 0:
        raise SettingError("qos", qos, "nothing is kept of a durable subscription with QoS 0", "qos=1")
    for token in tokens:
        read_resume_token(checked_text("after", token))
    return SubscribeCall(
        mode=Mode(mode),
        late_too=late_too,
        after=tokens,
        topic=checked_text("topic", topic),
        qos=checked_qos(qos),
        delay_s_max=read_duration_s(properties[MAX_DELAY]) if MAX_DELAY in properties else math.inf,
        properties=tuple(properties.items()),
    )


def advertise(bandwidths: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """Return the user properties that say what a publisher's events will take, by topic.

    >>> advertise({"traffic/a4": "15KB/s"})
    [('advertise', 'traffic/a4 = 15KB/s')]
    """
    if bandwidths is not None and not isinstance(bandwidths, Mapping):
        raise SettingError("advertise", bandwidths, "must be a mapping of topics", '{"traffic/a4": "15KB/s"}')
    texts = []
    for topic, bandwidth in (bandwidths or {}).items():
        if read_bandwidth_kb_per_s(_stated("bandwidth", bandwidth, "write 15KB/s")) is None:
            place = bandwidth.lower().rfind(ANY)
            raise TextError(bandwidth, place, "a publisher says what its events take", "write 15KB/s")
        texts.append(f"{topic} = {bandwidth.rpartition('=')[2].strip()}")  # it may say `bandwidth = 15KB/s`
        read_advertisement(checked_text("advertise", texts[-1]))
    return [(ADVERTISE, text) for text in texts]


def describe(
    attributes: Mapping[str, Value] | None, deadline: Duration | None, importance: int | None
) -> list[tuple[str, str]]:
    """Return the user properties of a message."""
    if attributes is not None and not isinstance(attributes, Mapping):
        raise SettingError("attributes", attributes, "must be a mapping of names to values", "{'speed': 61}")
    if attributes is not None and len(attributes) > ATTRIBUTES_MAX:
        raise SettingError("attributes", len(attributes), f"a message has at most {ATTRIBUTES_MAX}")
    properties = [_attribute(name, value) for name, value in (attributes or {}).items() if value is not None]
    if deadline is not None:
        properties.append((DEADLINE, duration_text("deadline", deadline)))
    if importance is not None:
        if type(importance) is not int or importance < 0:
            raise SettingError("importance", importance, "must be a whole number, 0 or more")
        properties.append((IMPORTANCE, str(importance)))
    return properties


def duration_text(name: str, duration: Duration) -> str:
    """Return a duration as it is sent.

    >>> duration_text("max_delay", "250ms"), duration_text("max_delay", 0.25)
    ('250ms', '0.25s')
    """
    if isinstance(duration, str):
        read_duration_s(duration)
        return duration
    return f"{_number(name, duration, math.inf)}s"


def checked_qos(qos: object) -> int:
    """Return the quality if it is one."""
    if not isinstance(qos, int) or isinstance(qos, bool) or qos not in QUALITIES:
        raise SettingError("qos", qos, "must be 0, 1 or 2", "1: at least once, 2: exactly once")
    return qos


def checked_topic_name(topic: object) -> str:
    """Return the topic if something can be published to it."""
    text = checked_text("topic", topic)
    if "+" in text or "#" in text:
        hint = "+ and # are for subscribers; name one topic, such as traffic/a4"
        raise SettingError("topic", text, "nothing is published to a pattern", hint)
    return text


def checked_topic_filter(topic: str) -> str:
    """Return the topic, or pattern, if something can subscribe to it [4.7.1]."""
    levels = topic.split("/")
    if "#" in levels[:-1] or any(len(each) > 1 and ("+" in each or "#" in each) for each in levels):
        hint = "+ stands for one level, # for all that follow, as in traffic/+/speed and traffic/#"
        raise SettingError("topic", topic, "this is no topic filter of MQTT", hint)
    return topic


def topic_matches(pattern: str, topic: str) -> bool:
    """Tell whether a topic meets a pattern, shared or not [4.7, 4.8.2].

    >>> topic_matches("a/+/c", "a/b/c"), topic_matches("$share/g/a/#", "a"), topic_matches("#", "$SYS/load")
    (True, True, False)
    """
    wanted, levels = pattern.split("/"), topic.split("/")
    if wanted[0] == "$share":
        wanted = wanted[2:]
    if topic.startswith("$") and wanted[:1] in (["+"], ["#"]):
        return False
    if wanted[-1:] == ["#"]:
        wanted = wanted[:-1]
        levels = levels[: len(wanted)]
    pairs = zip(wanted, levels, strict=False)
    return len(wanted) == len(levels) and all(each in ("+", level) for each, level in pairs)


def encoded(name: str, text: str) -> bytes:
    """Return the text in UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise SettingError(name, ascii(text)[:60], "has letters that UTF-8 cannot say") from None


def checked_text(name: str, text: object) -> str:
    """Return the text if MQTT can carry it [1.5.4]."""
    if not isinstance(text, str):
        raise SettingError(name, text, "must be a text")
    size = len(encoded(name, text))
    if not text or size > TEXT_BYTES_MAX or "\0" in text:
        shown = text if size < 100 else f"{text[:40]}…"
        raise SettingError(name, shown, f"must have 1 to {TEXT_BYTES_MAX} bytes, and no U+0000")
    return text


def _stated(name: str, text: object, hint: str) -> str:
    """Return a text that says something."""
    if not isinstance(text, str):
        raise SettingError(name, text, "must be a text", hint)
    if not text.strip():
        raise SettingError(name, text, "says nothing", hint)
    return checked_text(name, text)


def _attribute(name: str, value: Value) -> tuple[str, str]:
    place = f"attribute {name}"
    checked_text("attribute", name)
    if name.startswith(OWN):
        raise SettingError("attribute", name, f"names that begin with {OWN} are Betimes's own")
    if isinstance(value, bool):
        return name, "true" if value else "false"
    if isinstance(value, str):
        return name, checked_text(place, value) if value else ""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(place, value, "must be a finite number, a text or a flag")
    return name, repr(value)


def _number(name: str, value: float, most: float) -> str:
    if type(value) not in (int, float) or not 0.0 <= value <= most or math.isinf(value):
        if math.isinf(most):
            raise SettingError(name, value, "must be a number, 0 or more", "for example 3")
        raise SettingError(name, value, f"must be between 0 and {most:g}", "for example 0.95")
    return repr(value)
