"""The MQTT packets between brokers: events, bulletins and waiting times, written and read.

A link is an MQTT 5 connection. Control messages between brokers go to topics that begin with `$betimes/`. An
event travels as a PUBLISH to its own topic, as its publisher made it, with one property more (links may be
slow: every byte counts). The property holds, separated by spaces, the event's id, its age in milliseconds,
its sending time, the rest of its expiry, its QoS, its publisher, and the destination brokers of this copy.
Everything is QoS 1, so the PUBACK shows when a packet arrived; it also carries what the receiver knows better
than the sender: the transfer time, and the waiting times behind the receiver.

Bulletins are JSON. Whatever a neighbour sends is validated here; an invalid packet is a `LinkError`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any
from urllib.parse import quote, unquote

import mqtt5

from betimes.broker.delivery.publication import DemandViews, Publication
from betimes.language.filters.parse import parse_filter
from betimes.language.json.values import read_finite, read_text, read_whole
from betimes.matching.topics import check_topic_pattern
from betimes.model.errors import BetimesError
from betimes.model.events import EventId
from betimes.model.subscriptions import Advertisement, DemandVersion, QoS, Subscription
from betimes.model.topology import Link
from betimes.model.user_properties import AGE, ID
from betimes.mqtt.packets import QUALITIES, copy_publish
from betimes.routing.link_state import Bulletin, DemandBulletin, LinkBulletin, PublisherBulletin

VERSION = "5"  # of this protocol; brokers of different versions do not link
BROKER, LIFE = "$betimes-broker", "$betimes-life"
BULLETIN_TOPIC, BEAT_TOPIC = "$betimes/bulletin", "$betimes/beat"
SESSION_TOPIC, SIGNAL_TOPIC = "$betimes/session", "$betimes/signal"
DIRECT_TOPIC = "$betimes/direct"  # to one broker, which may be several links away
VIA, VIEWS = "$via", "$views"  # on an event
SENT = "$sent"  # on a beat
TOOK, WAITS = "$took", "$waits"  # on the acknowledgement of an event
OF_LINKS = frozenset({ID, AGE, VIA, VIEWS})
FACTS = 6  # fields of an event, before its destinations
NO_EXPIRY, NO_PUBLISHER = "-", "-"
SUBSCRIPTIONS_PER_PACKET = 2_000
NAME_LENGTH_MAX = 200


class LinkError(BetimesError):
    """A neighbour sent an invalid packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An event as it arrived over a link."""

    id: EventId
    age_s: float  # when the sender sent it
    sent_s: float  # on the sender's clock
    left_s: float  # of its message expiry interval, when the sender sent it
    destinations: frozenset[str]
    publisher: str
    qos: int
    views: DemandViews | None


def event_packet(
    publication: Publication,
    *,
    packet_id: int,
    age_s: float,
    destinations: Iterable[str],
    now_s: float,
) -> mqtt5.PublishPacket:
    """Return the packet that carries an event to a neighbour."""
    packet = publication.packet
    left_s = publication.void_at_s - now_s
    facts = (
        f"{quote(publication.origin, safe='')}:{publication.number}",
        f"{age_s * 1000.0:.1f}",
        f"{now_s:.4f}",
        # MQTT counts whole seconds, and rounding errors would add up over several links.
        NO_EXPIRY if left_s == math.inf else f"{left_s:.3f}",
        str(publication.qos),
        quote(publication.publisher, safe="") or NO_PUBLISHER,
    )
    via = " ".join([*facts, *[quote(name, safe="") for name in sorted(destinations)]])
    own = [each for each in packet.user_properties if each[0] not in OF_LINKS]
    return copy_publish(
        packet,
        topic=publication.topic,
        qos=QUALITIES[1],
        retain=publication.retain,
        packet_id=packet_id,
        message_expiry_interval=None if left_s == math.inf else max(math.ceil(left_s), 1),
        user_properties=[*own, (VIA, via), *_views_property(publication.views)],
    )


def read_arrival(packet: mqtt5.PublishPacket) -> Arrival:
    """Return the facts of an event in a packet from a neighbour."""
    via = property_of(packet.user_properties, VIA)
    if via is None:
        raise LinkError("an event from a neighbour that does not say where it comes from")
    facts = via.split(" ")
    try:
        event_id, age_ms, sent, left, quality, publisher = facts[:FACTS]
        origin, _, number = event_id.rpartition(":")
        arrival = Arrival(
            id=EventId(unquote(origin), int(number)),
            age_s=read_finite(float(age_ms)) / 1000.0,
            sent_s=read_finite(float(sent)),
            left_s=math.inf if left == NO_EXPIRY else read_finite(float(left)),
            destinations=frozenset(map(unquote, facts[FACTS:])),
            publisher="" if publisher == NO_PUBLISHER else unquote(publisher),
            qos=int(quality),
            views=_read_views(property_of(packet.user_properties, VIEWS)),
        )
    except ValueError as error:
        raise LinkError(f"an event from a neighbour whose facts cannot be read ({error})") from None
    if not arrival.destinations or not origin or arrival.qos not in (0, 1, 2) or arrival.age_s < 0.0:
        raise LinkError("an event from a neighbour that goes nowhere, has no id, no quality or no age")
    return arrival


def arrived_publication(
    packet: mqtt5.PublishPacket, arrival: Arrival, *, took_s: float, now_s: float
) -> Publication:
    """Return the event in a packet from a neighbour as its publisher made it."""
    as_published = copy_publish(
        packet,
        qos=QUALITIES[arrival.qos],
        packet_id=1 if arrival.qos else None,
        # As it was published: the expiry counts from the event's birth, also after a restart.
        message_expiry_interval=None if arrival.left_s == math.inf else round(arrival.left_s + arrival.age_s),
        user_properties=[each for each in packet.user_properties if each[0] not in OF_LINKS],
    )
    return Publication(
        as_published,
        packet.topic,
        born_s=now_s - arrival.age_s - took_s,
        publisher=arrival.publisher,
        origin=arrival.id.origin,
        number=arrival.id.number,
        views=arrival.views,
    )


def _views_property(views: DemandViews | None) -> list[tuple[str, str]]:
    if not views:
        return []
    texts = (f"{quote(home, safe='')}={epoch}.{number}" for home, (epoch, number) in views.items())
    return [(VIEWS, " ".join(texts))]


def _read_views(text: str | None) -> DemandViews | None:
    if text is None:
        return None
    parts = [each.partition("=") for each in text.split(" ")]
    versions = [version.partition(".") for _, _, version in parts]
    return {
        unquote(home): DemandVersion(int(epoch), int(number))
        for (home, _, _), (epoch, _, number) in zip(parts, versions, strict=True)
    }


def directed(source: str, target: str, hops_left: int, payload: bytes) -> bytes:
    """Return a message to one broker, as it travels over links."""
    return json.dumps([source, target, hops_left]).encode() + b"\n" + payload


def read_directed(payload: bytes) -> tuple[str, str, int, bytes]:
    """Return source, target, the links that it may still take, and the message itself."""
    line, _, inner = payload.partition(b"\n")
    try:
        source, target, hops_left = json.loads(line)
        return _name(source), _name(target), read_whole(hops_left), inner
    except (ValueError, TypeError, RecursionError, BetimesError) as error:
        raise LinkError(f"a message to a broker that cannot be read ({error})") from None


def bulletin_texts(bulletin: Bulletin) -> list[str]:
    """Return a bulletin as JSON, in several parts if it is long."""
    head: dict[str, Any] = {
        "broker": bulletin.broker,
        "epoch": bulletin.epoch,
        "number": bulletin.number,
    }
    if isinstance(bulletin, LinkBulletin):
        return [json.dumps({**head, "links": list(map(_link_row, bulletin.links))})]
    if isinstance(bulletin, PublisherBulletin):
        return [json.dumps({**head, "publishers": list(map(_advert_row, bulletin.advertisements))})]
    added = [demand_row(each) for each in bulletin.added]
    parts = [
        added[at : at + SUBSCRIPTIONS_PER_PACKET] for at in range(0, len(added), SUBSCRIPTIONS_PER_PACKET)
    ] or [[]]
    return [
        json.dumps(
            {
                **head,
                "whole": bulletin.is_whole,
                "removed": bulletin.removed if part == 0 else [],
                "added": rows,
                "parts_to_come": len(parts) - part - 1,
            }
        )
        for part, rows in enumerate(parts)
    ]


class BulletinReader:
    """Reads the bulletins of one neighbour, and joins those that come in parts."""

    def __init__(self) -> None:
        self._parts: list[DemandBulletin] = []

    def read(self, payload: bytes) -> Bulletin | None:
        """Return the bulletin that this packet completes; None if more parts are to come."""
        try:
            fields = json.loads(payload)
            broker = _name(fields["broker"])
            epoch, number = read_whole(fields["epoch"]), read_whole(fields["number"])
            if "links" in fields:
                links = tuple([_read_link(broker, each) for each in fields["links"]])
                return LinkBulletin(broker=broker, epoch=epoch, number=number, links=links)
            if "publishers" in fields:
                adverts = tuple([_read_advert(broker, each) for each in fields["publishers"]])
                return PublisherBulletin(broker=broker, epoch=epoch, number=number, advertisements=adverts)
            part = DemandBulletin(
                broker=broker,
                epoch=epoch,
                number=number,
                is_whole=bool(fields["whole"]),
                added=tuple([read_demand_row(broker, each) for each in fields["added"]]),
                removed=tuple([str(each) for each in fields["removed"]]),
            )
            to_come = read_whole(fields["parts_to_come"])
        except (ValueError, KeyError, TypeError, RecursionError, BetimesError) as error:
            raise LinkError(f"a bulletin that cannot be read ({error})") from None
        return self._joined(part, to_come)

    def _joined(self, part: DemandBulletin, to_come: int) -> DemandBulletin | None:
        first = self._parts[0] if self._parts else part
        if (part.broker, part.epoch, part.number) != (first.broker, first.epoch, first.number):
            raise LinkError("a bulletin in the middle of another")
        self._parts.append(part)
        if to_come:
            return None
        added = tuple([subscription for each in self._parts for subscription in each.added])
        self._parts = []
        return replace(first, added=added)


def waits_text(waits_s: Mapping[str, float]) -> str:
    """Return waiting times by destination as an acknowledgement carries them."""
    return json.dumps({name: round(wait_s, 4) for name, wait_s in waits_s.items()})


def read_waits(text: str) -> dict[str, float]:
    """Return the waiting times behind a neighbour that an acknowledgement carries."""
    try:
        return {str(name): max(read_finite(wait_s), 0.0) for name, wait_s in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise LinkError(f"waits that cannot be read ({error})") from None


def property_of(properties: Sequence[tuple[str, str]], name: str) -> str | None:
    """Return the value of the first property of this name; None if there is none."""
    return next((value for each, value in properties if each == name), None)


_link_row = attrgetter("target", "s_per_kb_mean", "s_per_kb_sd", "delay_s")
_advert_row = attrgetter("publisher", "topic", "rate_per_s", "size_kb_mean")


def demand_row(subscription: Subscription) -> list[Any]:
    """Return a row of demand as JSON data; `read_demand_row` reads it."""
    qos = subscription.qos
    bound_s = None if math.isinf(qos.delay_s_max) else qos.delay_s_max
    what = (subscription.id, subscription.pattern, subscription.filter.text)
    return [*what, bound_s, qos.price, subscription.subscribers, subscription.durable]


def read_demand_row(broker: str, fields: list[Any]) -> Subscription:
    """Return a row of a broker's demand from JSON data."""
    subscription_id, pattern, text, bound_s, price, count, durable = fields
    check_topic_pattern(pattern)
    return Subscription(
        id=str(subscription_id),
        home=broker,
        filter=parse_filter(text),
        qos=QoS(
            delay_s_max=math.inf if bound_s is None else read_finite(bound_s),
            price=read_finite(price),
        ),
        pattern=pattern,
        subscribers=read_whole(count),
        durable=bool(durable),
    )


def _read_link(source: str, fields: list[Any]) -> Link:
    target, mean, sd, delay_s = fields
    return Link(
        source=source,
        target=_name(target),
        s_per_kb_mean=max(read_finite(mean), 0.0),
        s_per_kb_sd=max(read_finite(sd), 0.0),
        delay_s=max(read_finite(delay_s), 0.0),
    )


def _read_advert(broker: str, fields: list[Any]) -> Advertisement:
    publisher, topic, rate_per_s, size_kb = fields
    return Advertisement(
        publisher=str(publisher),
        broker=broker,
        topic=str(topic),
        rate_per_s=max(read_finite(rate_per_s), 0.0),
        size_kb_mean=max(read_finite(size_kb), 0.0),
    )


def _name(value: object) -> str:
    return read_text(value, least=1, most=NAME_LENGTH_MAX)
