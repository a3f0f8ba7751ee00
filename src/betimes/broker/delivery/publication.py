"""A publication, as the broker keeps it until all its subscribers have it.

One object serves all subscribers; what differs between them (QoS, packet id, age) is added when a packet is
made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import mqtt5

from betimes.broker.delivery.memory_account import PROPERTY_BYTES, UserMemory
from betimes.language.quantities import read_duration_s
from betimes.model.errors import TextError
from betimes.model.events import EventId, Value, number_reading
from betimes.model.subscriptions import DemandVersion
from betimes.model.user_properties import AGE, ATTRIBUTES_MAX, DEADLINE, ID, OWN
from betimes.mqtt import mqtt311
from betimes.mqtt.packets import OVERHEAD_BYTES, QUALITIES, copy_publish, encode_publish
from betimes.replay.buffer import FoundMessage

JSON_BYTES_MAX = 65_536  # of a payload that is read for attributes
JSON_TYPE = "application/json"
_AT_MOST_ONCE = mqtt5.QoS.AT_MOST_ONCE

# By broker: which version of its demand the broker knew that chose where a publication goes.
DemandViews = Mapping[str, DemandVersion]


class Publication:
    """A published message: its packet, the full topic name, when it was born and when it is void."""

    __slots__ = (
        "_attributes",
        "_deadline_s",
        "_plain",
        "_size_bytes",
        "born_s",
        "is_recorded",
        "number",
        "origin",
        "packet",
        "payer",
        "publisher",
        "qos",
        "retain",
        "retained_as",
        "retained_by",
        "topic",
        "views",
        "void_at_s",
        "waits_in",
    )

    def __init__(
        self,
        packet: mqtt5.PublishPacket,
        topic: str,
        *,
        born_s: float,
        publisher: str = "",
        origin: str = "",
        number: int = 0,
        views: DemandViews | None = None,
    ) -> None:
        self.packet = packet
        self.topic = topic
        self.born_s = born_s  # on this server's clock: now less the age it came with
        self.publisher = publisher  # the client id; "" for the server itself
        self.origin = origin  # the server that numbered it
        self.number = number
        self.views = views  # None: it has QoS 0, or did not come from another broker
        self.is_recorded = False  # what becomes of it is written down
        quality = packet.qos
        self.qos = 0 if quality is _AT_MOST_ONCE else quality.value
        self.retain = packet.retain
        expiry_s = packet.message_expiry_interval
        self.void_at_s = math.inf if expiry_s is None else born_s + expiry_s
        self.waits_in = 0  # sessions, queued or in flight
        self.payer: UserMemory | None = None  # the account that it is charged to while it waits
        self.retained_by: UserMemory | None = None  # and while it is retained
        self._size_bytes = 0
        self.retained_as = 0  # by `Retained`: its number there
        self._attributes: dict[str, Value] | None = None
        self._deadline_s: float | None = None
        self._plain: dict[int, bytes] | None = None

    @property
    def id(self) -> EventId:
        """Return its name in the whole network."""
        return EventId(self.origin, self.number)

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes, whatever it is filled with."""
        if self._size_bytes:
            return self._size_bytes
        packet = self.packet
        size = self.content_bytes + OVERHEAD_BYTES + PROPERTY_BYTES * len(packet.user_properties)
        if packet.correlation_data or packet.response_topic or packet.content_type:
            rare = (packet.correlation_data, packet.response_topic, packet.content_type)
            size += sum(len(each) for each in rare if each)
        self._size_bytes = size
        return size

    @property
    def content_bytes(self) -> int:
        """Return about how much there is to transmit: payload, topic and user properties."""
        properties = self.packet.user_properties
        size = sum(len(name) + len(value) for name, value in properties) if properties else 0
        return len(self.packet.payload) + len(self.topic) + size

    def attributes(self) -> dict[str, Value]:
        """Return what filters look at: user properties, and the top-level scalars of a JSON payload."""
        if self._attributes is None:
            self._attributes = _attributes_of(self.packet)
        return self._attributes

    def deadline_s(self) -> float:
        """Return the publisher's bound on delay; without one that can be read there is none."""
        if self._deadline_s is None:
            self._deadline_s = _deadline_s_of(self.packet)
        return self._deadline_s

    def too_late(self, now_s: float, bound_s: float) -> bool:
        """Tell whether it is too late: by its expiry, its publisher's deadline or a subscriber's bound."""
        return now_s >= self.void_at_s or now_s - self.born_s > min(bound_s, self.deadline_s())

    def plain(self, version: int, *, told: bool, now_s: float) -> bytes:
        """Return the packet for all subscribers with QoS 0 and no identifier, encoded once.

        Only for the moment in which it is delivered: its age is in it.
        """
        made = self._plain
        kind = -version if told else version
        if made is None:
            made = self._plain = {}
        elif kind in made:
            return made[kind]
        packet = self.packet
        is_its_own = self.qos or self.retain or packet.topic_alias is not None
        if told or is_its_own or self.void_at_s != math.inf:  # most can go on as they came
            packet = self.packet_for(qos=0, retain=False, now_s=now_s, told=told)
        data = made[kind] = encode_publish(packet) if version == 5 else mqtt311.written(packet)
        return data

    def forget_plain(self) -> None:
        """Forget what `plain` made: the moment is over, and it takes room."""
        self._plain = None

    def packet_for(
        self,
        *,
        qos: int,
        retain: bool,
        now_s: float,
        packet_id: int | None = None,
        duplicate: bool = False,
        subscription_ids: list[int] | None = None,
        told: bool = False,
        alias: int | None = None,
        alias_known: bool = False,
    ) -> mqtt5.PublishPacket:
        """Return the packet for one receiver; with `told` it carries its id and its age.

        Where the receiver knows the topic's alias, the name is left out.
        """
        packet = self.packet
        properties = packet.user_properties
        if told:
            age_ms = round((now_s - self.born_s) * 1000.0)
            properties = [each for each in properties if each[0] not in (ID, AGE)]
            properties += [(ID, f"{self.origin}:{self.number}"), (AGE, str(age_ms))]
        # What is left of it: a message that waited is not young again [MQTT-3.3.2-6].
        left_s = None if self.void_at_s == math.inf else max(math.ceil(self.void_at_s - now_s), 1)
        return mqtt5.PublishPacket(
            "" if alias_known else self.topic,
            packet.payload,
            qos=QUALITIES[qos],
            retain=retain,
            packet_id=packet_id,
            duplicate=duplicate,
            payload_format_indicator=packet.payload_format_indicator,
            message_expiry_interval=left_s,
            content_type=packet.content_type,
            response_topic=packet.response_topic,
            correlation_data=packet.correlation_data,
            subscription_ids=subscription_ids,
            topic_alias=alias,
            user_properties=properties,
        )


def spelled_out(packet: mqtt5.PublishPacket, topic: str) -> mqtt5.PublishPacket:
    """Return a packet with its topic in place of an alias."""
    return copy_publish(packet, topic=topic, packet_id=packet.packet_id, duplicate=packet.duplicate)


def publication_of(found: FoundMessage[mqtt5.PublishPacket]) -> Publication:
    """Return a kept packet as it was published."""
    return Publication(
        found.item,
        found.item.topic,
        born_s=found.born_s,
        publisher=found.source,
        origin=found.origin,
        number=found.number,
    )


def read_deadline_s(text: str) -> float:
    """Return a publisher's bound on delay; what cannot be read is none."""
    try:
        return read_duration_s(text)
    except TextError:
        return math.inf


def _deadline_s_of(packet: mqtt5.PublishPacket) -> float:
    for name, value in packet.user_properties:
        if name == DEADLINE:
            return read_deadline_s(value)
    return math.inf


def _attributes_of(packet: mqtt5.PublishPacket) -> dict[str, Value]:
    attributes: dict[str, Value] = {}
    if packet.content_type == JSON_TYPE and len(packet.payload) <= JSON_BYTES_MAX:
        attributes.update(json_scalars(packet.payload))
    for name, text in packet.user_properties:
        if not name.startswith(OWN) and (name in attributes or len(attributes) < ATTRIBUTES_MAX):
            number = number_reading(text)
            attributes[name] = text if number is None else number
    return attributes


def json_scalars(payload: bytes) -> dict[str, Value]:
    """Return the numbers, texts and flags at the top of a JSON object; of anything else, nothing."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    scalars: dict[str, Value] = {}
    for name, value in found.items():
        if isinstance(value, str | bool):
            scalars[name] = value
        elif isinstance(value, int | float) and (number := number_reading(value)) is not None:
            scalars[name] = number
        if len(scalars) == ATTRIBUTES_MAX:
            break
    return {name: value for name, value in scalars.items() if not name.startswith(OWN)}
