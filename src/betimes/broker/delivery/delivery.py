"""A delivery: one publication for one client, with its QoS, bound, price and packet id."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import mqtt5

from betimes.broker.delivery.publication import Publication
from betimes.model.telemetry import Reason
from betimes.mqtt.packets import OVERHEAD_BYTES


class SharedSubscription(Protocol):
    """The shared subscription by which a delivery came: another member of its group may get it instead."""

    @property
    def pattern(self) -> str:
        """Return the topic filter, without `$share/…`."""

    @property
    def group(self) -> str | None:
        """Return the group."""

    @property
    def written(self) -> str:
        """Return the topic filter as the client wrote it."""


class Delivery:
    """One publication on its way to one client."""

    __slots__ = (
        "bound_s",
        "packet_id",
        "price",
        "publication",
        "qos",
        "released",
        "retain",
        "share",
        "subscription_ids",
        "told",
        "under_way",
    )

    def __init__(
        self,
        publication: Publication,
        *,
        qos: int = 0,
        retain: bool = False,
        subscription_ids: list[int] | None = None,
        told: bool = False,
        bound_s: float = math.inf,
        price: float = 1.0,
        share: SharedSubscription | None = None,
    ) -> None:
        self.publication = publication
        self.qos = qos
        self.retain = retain
        self.subscription_ids = subscription_ids
        self.told = told  # its id and age
        self.bound_s = bound_s  # the subscriber's, on its age
        self.price = price  # what it is worth to the subscriber in time
        self.share = share  # the shared subscription by which it came
        self.packet_id: int | None = None
        self.under_way = False  # it was sent on the connection of the moment
        self.released = False  # QoS 2: the client has it, and PUBREL is under way

    @property
    def size_bytes(self) -> int:
        """Return about how much room it takes while it waits."""
        return self.publication.size_bytes + OVERHEAD_BYTES

    def too_late(self, now_s: float) -> bool:
        """Say whether it is of no use any more: to its publisher or to its subscriber."""
        return self.publication.too_late(now_s, self.bound_s)

    def dies_at_s(self) -> float:
        """Return when it becomes of no use; inf if never."""
        publication = self.publication
        return min(publication.void_at_s, publication.born_s + min(self.bound_s, publication.deadline_s()))

    def packet(
        self, now_s: float, *, again: bool = False, alias: int | None = None, alias_known: bool = False
    ) -> mqtt5.PublishPacket:
        """Return it as a packet; `again` marks a repetition."""
        return self.publication.packet_for(
            qos=self.qos,
            retain=self.retain,
            now_s=now_s,
            packet_id=self.packet_id,
            duplicate=again,
            subscription_ids=self.subscription_ids,
            told=self.told,
            alias=alias,
            alias_known=alias_known,
        )


Lose = Callable[[Delivery, Reason, float], None]
