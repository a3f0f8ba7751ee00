"""Serialisation of a session, for the store's file and for another broker.

The values of a subscription, of a publication and of a delivery are the same in both. Another broker gets a
session as rows: one for each subscription (`s`), each QoS 2 packet id in flight from the client (`i`) and
each delivery that it has not got yet (`d`). The PUBLISH packets of the deliveries stand behind the rows.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mqtt5

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import DemandViews, Publication
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.storage.change_tables import Row
from betimes.language.json.values import read_finite, read_finite_or_inf, read_text, read_whole
from betimes.matching.topics import shared_parts
from betimes.model.subscriptions import DemandVersion
from betimes.mqtt.codec import PACKET_BYTES_LIMIT, Codec
from betimes.mqtt.packet_ids import PACKET_ID_MAX
from betimes.mqtt.packets import OVERHEAD_BYTES, QUALITIES, encode_publish
from betimes.mqtt.subscribe_options import read_options

ROWS_MAX = 200  # of one part
SUBSCRIPTION, INCOMING, DELIVERY = "s", "i", "d"

Item = BrokerSubscription | int | Delivery


class PacketReader:
    """Reads publications that were stored as PUBLISH packets."""

    def __init__(self) -> None:
        self._codec = Codec(packet_bytes_max=PACKET_BYTES_LIMIT, dialled=True)
        self._codec.feed(mqtt5.ConnAckPacket().write())  # from now on the codec expects PUBLISH

    def read(self, data: bytes) -> mqtt5.PublishPacket:
        """Return the packet in these bytes; a PacketError or a ValueError says why there is none."""
        packets = self._codec.feed(data)
        if len(packets) != 1 or not isinstance(packets[0], mqtt5.PublishPacket):
            raise ValueError("not one whole PUBLISH")
        return packets[0]


# --- values of a row, as the store keeps them


def subscription_values(subscription: BrokerSubscription) -> Row:
    """Return the values of a subscription, without its pattern."""
    options = None if subscription.options is None else json.dumps(subscription.options.texts)
    flags = (subscription.qos, int(subscription.no_local), int(subscription.retain_as_published))
    return (*flags, subscription.identifier, options)


def read_subscription(session: Session, written: str, values: Sequence[Any]) -> BrokerSubscription:
    """Return the subscription of these values; a BetimesError or a ValueError says what is wrong."""
    qos, no_local, as_published, identifier, options = values
    group, pattern = shared_parts(written)
    return BrokerSubscription(
        session=session,
        pattern=pattern,
        group=group,
        qos=qos,
        no_local=bool(no_local),
        retain_as_published=bool(as_published),
        identifier=identifier,
        options=None
        if options is None
        else read_options([(name, text) for name, text in json.loads(options)]),
        durable=qos > 0,
    )


def delivery_values(delivery: Delivery) -> Row:
    """Return the values of a delivery, without its publication."""
    share, identifiers = delivery.share, delivery.subscription_ids
    return (
        delivery.qos,
        int(delivery.retain),
        None if identifiers is None else json.dumps(identifiers),
        int(delivery.told),
        delivery.bound_s,
        delivery.price,
        None if share is None else share.written,
        delivery.packet_id,
        int(delivery.released),
    )


def read_delivery(session: Session, publication: Publication, values: Sequence[Any]) -> Delivery:
    """Return the delivery of these values."""
    qos, retain, identifiers, told, bound_s, price, share, packet_id, released = values
    delivery = Delivery(
        publication,
        qos=qos,
        retain=bool(retain),
        subscription_ids=None if identifiers is None else json.loads(identifiers),
        told=bool(told),
        bound_s=bound_s,
        price=price,
        share=None if share is None else _share(session, share),
    )
    delivery.packet_id = packet_id
    delivery.released = bool(released)
    return delivery


def _share(session: Session, written: str) -> BrokerSubscription:
    """Return the shared subscription of a delivery; the client may have unsubscribed since."""
    subscription = session.subscriptions.get(written)
    if subscription is not None:
        return subscription
    group, pattern = shared_parts(written)
    return BrokerSubscription(session=session, pattern=pattern, group=group)


def read_views(values: Mapping[str, Sequence[int]] | None) -> DemandViews | None:
    """Return the versions of demand that a publication went by."""
    if not values:
        return None
    return {
        home: DemandVersion(read_whole(epoch), read_whole(number)) for home, (epoch, number) in values.items()
    }


# --- a session for another broker


class RowWriter:
    """Writes a session, or late deliveries to it, in parts of a bounded size."""

    def __init__(self, items: Iterable[Item], *, bytes_max: int) -> None:
        self._items = deque(items)
        self._bytes_max = bytes_max
        self.too_large: list[Item] = []  # larger than a part
        self.written: list[Item] = []  # in the last part

    @property
    def is_done(self) -> bool:
        """Tell whether all items are written."""
        return not self._items

    def part(self, now_s: float) -> tuple[list[list[Any]], bytes]:
        """Return the next rows, and the packets behind them."""
        rows: list[list[Any]] = []
        packets: list[bytes] = []
        size = 0
        self.written = []
        while self._items and len(rows) < ROWS_MAX:
            row, packet = _row(self._items[0], now_s)
            row_bytes = len(json.dumps(row)) + len(packet) + 2
            if row_bytes > self._bytes_max:
                self.too_large.append(self._items.popleft())
                continue
            if size + row_bytes > self._bytes_max:
                break
            size += row_bytes
            self.written.append(self._items.popleft())
            rows.append(row)
            packets.append(packet)
        return rows, b"".join(packets)


def session_items(session: Session) -> list[Item]:
    """Return all items that move with a session; deliveries of QoS 0 do not."""
    owed = [each for each in session.owed() if each.qos]
    return [*session.subscriptions.values(), *session.incoming, *owed]


def _row(item: Item, now_s: float) -> tuple[list[Any], bytes]:
    if isinstance(item, Delivery):
        publication = item.publication
        packet = encode_publish(publication.packet)
        where = (publication.topic, publication.publisher, publication.origin, publication.number)
        age_s = now_s - publication.born_s
        return [DELIVERY, len(packet), *where, age_s, publication.views, *delivery_values(item)], packet
    if isinstance(item, BrokerSubscription):
        return [SUBSCRIPTION, item.written, *subscription_values(item)], b""
    return [INCOMING, item], b""


@dataclass(slots=True)
class SessionRows:
    """The rows of a session received so far. An invalid row is a ValueError or a BetimesError."""

    subscriptions: dict[str, list[Any]] = field(default_factory=dict)
    incoming: list[int] = field(default_factory=list)
    deliveries: list[tuple[Publication, list[Any]]] = field(default_factory=list)
    size_bytes: int = 0
    _reader: PacketReader = field(default_factory=PacketReader)

    def add(self, rows: Sequence[Sequence[Any]], packets: bytes, now_s: float) -> None:
        """Add rows, with the packets behind them."""
        at = 0
        self.size_bytes += OVERHEAD_BYTES * len(rows)
        for kind, *values in rows:
            if kind == SUBSCRIPTION:
                self._add_subscription(values)
            elif kind == INCOMING:
                (packet_id,) = values
                self.incoming.append(read_whole(packet_id, 1, PACKET_ID_MAX))
            elif kind == DELIVERY:
                size, *others = values
                packet = packets[at : at + read_whole(size, 1)]
                at += size
                self._add_delivery(packet, others, now_s)
            else:
                raise ValueError(f"{kind!r} is no kind of row")
        if at != len(packets):
            raise ValueError("packets that belong to no row, or rows without their packet")

    def _add_subscription(self, values: Sequence[Any]) -> None:
        written, qos, no_local, as_published, identifier, options = values
        shared_parts(read_text(written))
        if identifier is not None:
            read_whole(identifier, 1, 268_435_455)
        if options is not None:
            read_options([(read_text(name), read_text(text)) for name, text in json.loads(options)])
        self.subscriptions[written] = [
            read_whole(qos, 0, 2),
            bool(no_local),
            bool(as_published),
            identifier,
            options,
        ]
        self.size_bytes += len(written) + len(options or "")

    def _add_delivery(self, data: bytes, values: Sequence[Any], now_s: float) -> None:
        topic, publisher, origin, number, age_s, views, *others = values
        publication = Publication(
            self._reader.read(data),
            read_text(topic),
            born_s=now_s - max(read_finite(age_s), 0.0),
            publisher=read_text(publisher),
            origin=read_text(origin),
            number=read_whole(number, 0),
            views=read_views(views),
        )
        if not topic or topic != publication.packet.topic:
            raise ValueError("a delivery whose topic is not that of its packet")
        self.deliveries.append((publication, _checked_delivery(others)))
        self.size_bytes += publication.size_bytes


def _checked_delivery(values: Sequence[Any]) -> list[Any]:
    qos, retain, identifiers, told, bound_s, price, share, packet_id, released = values
    if identifiers is not None and not all(isinstance(each, int) for each in json.loads(identifiers)):
        raise ValueError("identifiers of subscriptions are numbers")
    if share is not None and shared_parts(read_text(share))[0] is None:
        raise ValueError("no shared subscription")
    if packet_id is not None:
        read_whole(packet_id, 1, PACKET_ID_MAX)
    return [
        read_whole(qos, 1, len(QUALITIES) - 1),
        bool(retain),
        identifiers,
        bool(told),
        read_finite_or_inf(bound_s),
        read_finite(price),
        share,
        packet_id,
        bool(released) and packet_id is not None,
    ]
