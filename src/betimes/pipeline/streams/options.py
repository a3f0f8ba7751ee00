"""The options of `format("betimes")`, read once, on the driver, before anything runs.

Options that Kafka's source has too may be given by Kafka's names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from betimes.client.addresses import Address, read_address
from betimes.client.blocking.ranges import PLANNED_MAX, RangeReader, RangeRequest
from betimes.client.request import checked_text, duration_text
from betimes.language.filters.parse import parse_filter
from betimes.language.quantities import read_duration_s
from betimes.language.suggestions import did_you_mean
from betimes.matching.topics import check_topic_name, check_topic_pattern
from betimes.model.errors import SettingError, TextError

LATEST, EARLIEST = "latest", "earliest"
PARTITIONS_MAX = 1_000
ADDRESSES_MAX = 100
IN_FLIGHT_MAX = 10_000
TOPICS_REMEMBERED = 4_096

BYTES_MAX = 10**12
MILLISECONDS_DIGITS = 14
TRIGGER_DELAY = "15m"  # as of Kafka's source

WHERE = ("url", "user", "password", "ca", "cert", "key", "timeout", "reconnect")
READING = (
    "topic", "filter", "starting", "ending", "startingTimestamp", "endingTimestamp", "messages_per_batch",
    "maxBytesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "partitions", "failOnDataLoss",
    "includeHeaders", "pushFilters", "gaps", "part",
)  # fmt: skip
KAFKAS = {
    "startingOffsets": "starting",
    "endingOffsets": "ending",
    "maxOffsetsPerTrigger": "messages_per_batch",
    "minPartitions": "partitions",
}
WRITING = ("topic", "deadline", "importance", "in_flight")
SPARKS = ("checkpointlocation", "path", "querystarttimestamp", "queryname")  # options for Spark itself


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlace:
    """The brokers, and how long to wait for them."""

    addresses: tuple[Address, ...]
    ca: str | None
    cert: str | None
    key: str | None
    timeout_s: float
    patience_s: float  # how long an unreachable broker is tried again

    def reader(self, *, patience_s: float | None = None) -> RangeReader:
        """Return a reader of these brokers."""
        return RangeReader(
            self.addresses,
            ca=self.ca,
            cert=self.cert,
            key=self.key,
            timeout_s=self.timeout_s,
            patience_s=self.patience_s if patience_s is None else patience_s,
        )


@dataclass(frozen=True, slots=True)
class PublishedSince:
    """The position in front of what was published at a time, or later."""

    at_us: int


Position = str | dict[str, int] | PublishedSince


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a stream reads, from where, and how much at once."""

    place: StreamPlace
    wanted: RangeRequest
    starting: Position | None  # None: no such option
    ending: Position | None  # of a batch
    messages_per_batch: int | None
    batch_bytes_max: int | None
    batch_messages_min: int  # fewer are waited for
    trigger_delay_s_max: float  # for so long
    fails_on_loss: bool
    pushes_filters: bool  # of spark.read: predicates go to the broker
    partitions: int
    gaps: str | None  # the directory of the table of gaps
    takes_part: bool  # also from a broker that does not receive, or keep, everything


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where rows are published, and the settings of all of them."""

    place: StreamPlace
    topic: str | None  # None: a column has it
    deadline: str | None
    importance: int | None
    in_flight: int  # messages that wait for their acknowledgement


def read_source_options(options: Mapping[str, str]) -> SourceOptions:
    """Return the options of a reader; an error names the wrong option."""
    found = _known(options, READING)
    if "topic" not in found:
        raise SettingError(
            "topic", None, "is missing: it is the topic pattern to read", '.option("topic", "traffic/#")'
        )
    if found.get("filter") is not None:
        parse_filter(found["filter"])
    topic = checked_text("topic", found["topic"])
    check_topic_pattern(topic)
    gaps = found.get("gaps")
    if gaps is not None and Path(gaps).exists() and not Path(gaps).is_dir():
        raise SettingError("gaps", gaps, "is a file", "name a folder for the table of gaps")
    part = found.get("part", "refuse")
    if part not in ("refuse", "accept"):
        raise SettingError("part", part, "must be refuse or accept")
    return SourceOptions(
        place=_place(found),
        wanted=RangeRequest(topic=topic, filter=found.get("filter")),
        starting=_where("starting", found),
        ending=_where("ending", found),
        messages_per_batch=_limit("messages_per_batch", found, PLANNED_MAX),
        batch_bytes_max=_limit("maxBytesPerTrigger", found, BYTES_MAX),
        batch_messages_min=_limit("minOffsetsPerTrigger", found, PLANNED_MAX) or 0,
        trigger_delay_s_max=_duration_s("maxTriggerDelay", found.get("maxTriggerDelay", TRIGGER_DELAY)),
        fails_on_loss=_flag("failOnDataLoss", found, "true"),
        pushes_filters=_flag("pushFilters", found, "false"),
        partitions=_count("partitions", found, 1, PARTITIONS_MAX),
        gaps=gaps,
        takes_part=part == "accept",
    )


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Return the options of a writer; an error names the wrong option."""
    found = _known(options, WRITING)
    deadline = found.get("deadline")
    return SinkOptions(
        place=_place(found),
        topic=checked_topic(found["topic"]) if "topic" in found else None,
        deadline=None if deadline is None else duration_text("deadline", deadline),
        importance=_count("importance", found, 1, 10**6) if "importance" in found else None,
        in_flight=_count("in_flight", found, 1_000, IN_FLIGHT_MAX),
    )


@lru_cache(maxsize=TOPICS_REMEMBERED)
def checked_topic(text: str) -> str:
    """Return the text, if it is a topic to publish to."""
    check_topic_name(checked_text("topic", text))
    return text


def includes_headers(options: Mapping[str, str]) -> bool:
    """Return whether the rows are to have Kafka's column `headers`."""
    return _flag("includeHeaders", _known(options, (*READING, *WRITING)), "false")


def _known(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the options by our own names; Spark does not distinguish capitals in them."""
    kafkas = {kafkas: ours for kafkas, ours in KAFKAS.items() if ours in names}
    ours = {name.lower(): name for name in (*WHERE, *names, *SPARKS)}
    ours |= {name.lower(): name for name in kafkas}
    found: dict[str, str] = {}
    said: dict[str, str] = {}  # by our name, the name that was given
    for given, value in options.items():
        if given.lower() not in ours:
            hint = did_you_mean(given, (*WHERE, *names, *kafkas), "options")
            raise SettingError("option", given, "there is no such option", hint)
        written = ours[given.lower()]
        name = kafkas.get(written, written)
        if found.get(name, value) != value:
            problem = f"means the same as {said[name]}, which is {found[name]!r}"
            raise SettingError(written, value, problem, "give one of them")
        found[name], said[name] = value, written
    if "url" not in found:
        raise SettingError("url", None, "names the broker, and is missing", "mqtt://127.0.0.1:1883")
    return found


def _place(found: Mapping[str, str]) -> StreamPlace:
    texts = found["url"].split()
    if not 1 <= len(texts) <= ADDRESSES_MAX:
        raise SettingError("url", len(texts), f"name between 1 and {ADDRESSES_MAX} brokers")
    addresses = [read_address(text) for text in texts]
    user, password = found.get("user"), found.get("password")
    return StreamPlace(
        addresses=tuple(
            replace(
                each,
                user=each.user if user is None else user,
                password=each.password if password is None else password,
            )
            for each in addresses
        ),
        ca=found.get("ca"),
        cert=found.get("cert"),
        key=found.get("key"),
        timeout_s=_duration_s("timeout", found.get("timeout", "10s")),
        patience_s=_duration_s("reconnect", found.get("reconnect", "60s")),
    )


def _duration_s(name: str, text: str) -> float:
    try:
        return read_duration_s(text)
    except TextError as error:
        raise SettingError(name, text, error.problem, "for example 10s") from None


def _count(name: str, found: Mapping[str, str], usual: int, most: int) -> int:
    text = found.get(name, str(usual))
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:20]) <= most:
        raise SettingError(name, text, f"must be a whole number between 1 and {most}")
    return int(text)


def _limit(name: str, found: Mapping[str, str], most: int) -> int | None:
    return _count(name, found, 1, most) if name in found else None


def _flag(name: str, found: Mapping[str, str], usual: str) -> bool:
    text = found.get(name, usual).lower()
    if text not in ("true", "false"):
        raise SettingError(name, found[name], "must be true or false")
    return text == "true"


def _where(name: str, found: Mapping[str, str]) -> Position | None:
    """Return where a range starts, or ends: by a time, or by a position."""
    timed = f"{name}Timestamp"
    if timed not in found:
        return _position(name, found.get(name))
    if name in found:
        raise SettingError(timed, found[timed], f"and {name} = {found[name]!r} both say where", "give one")
    text = found[timed]
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= MILLISECONDS_DIGITS):
        raise SettingError(timed, text, "must be milliseconds of the Unix epoch", "for example 1794807910540")
    return PublishedSince(int(text) * 1000)


def _position(name: str, text: str | None) -> str | dict[str, int] | None:
    if text is None or text in (LATEST, EARLIEST):
        return text
    hint = 'write latest, earliest, or numbers by broker: {"b1": 1794807910540078}'
    try:
        numbers = json.loads(text)
    except ValueError:
        raise SettingError(name, text, "cannot be read", hint) from None
    if not isinstance(numbers, dict) or not all(type(each) is int and each >= 0 for each in numbers.values()):
        raise SettingError(name, text, "must be a number for each broker", hint)
    return numbers
