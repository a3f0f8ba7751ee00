"""What do the clients of this broker want, as the other brokers have to know it?

Whoever wants the same, as soon, counts as one wish with their prices added up; what has changed is told
together. Of a shared subscription one member gets each message, so the group is one subscriber.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from betimes.broker.delivery.session import BrokerSubscription
from betimes.model.buffer_settings import BufferSettings
from betimes.model.filters import EVERYTHING, Filter
from betimes.model.subscriptions import QoS, Subscription


class _DemandKey(NamedTuple):
    pattern: str
    filter_text: str
    delay_s_max: float
    durable: bool
    group: str | None


@dataclass(slots=True)
class _Demand:
    id: str
    filter: Filter
    price: float = 0.0
    count: int = 0
    was_told: bool = False


class LocalDemand:
    """The wishes of all local subscriptions, and which of them changed since they were last told."""

    def __init__(self, broker: str, standing: Iterable[Subscription] = ()) -> None:
        self._broker = broker
        self._standing = list(standing)  # the broker's own, until they were told
        self._wishers: dict[_DemandKey, _Demand] = {}
        self._changed: set[_DemandKey] = set()
        self._given = 0

    def __len__(self) -> int:
        return len(self._wishers)

    @property
    def has_changed(self) -> bool:
        """Tell whether there is something to tell."""
        return bool(self._changed or self._standing)

    def add(self, grant: BrokerSubscription) -> None:
        """Take in a subscription."""
        wish = _wish_of(grant)
        wishers = self._wishers.get(wish)
        if wishers is None:
            self._given += 1
            wanted = EVERYTHING if grant.wish is None else grant.wish.filter
            wishers = self._wishers[wish] = _Demand(str(self._given), wanted)
        wishers.price += _price_of(grant)
        wishers.count += 1
        self._changed.add(wish)

    def remove(self, grant: BrokerSubscription) -> None:
        """Forget a subscription that was taken in."""
        wish = _wish_of(grant)
        wishers = self._wishers[wish]
        wishers.price -= _price_of(grant)
        wishers.count -= 1
        self._changed.add(wish)

    def take_changes(self) -> tuple[list[Subscription], list[str]]:
        """Return what is new or other than it was, and the ids of what is gone."""
        added, self._standing = self._standing, []
        removed: list[str] = []
        for wish in self._changed:
            wishers = self._wishers[wish]
            if wishers.was_told:
                removed.append(wishers.id)
            if wishers.count:
                added.append(self._subscription(wish, wishers))
                wishers.was_told = True
            else:
                del self._wishers[wish]
        self._changed.clear()
        return added, removed

    def _subscription(self, wish: _DemandKey, wishers: _Demand) -> Subscription:
        share = 1 if wish.group is None else wishers.count
        return Subscription(
            id=wishers.id,
            home=self._broker,
            filter=wishers.filter,
            qos=QoS(delay_s_max=wish.delay_s_max, price=max(wishers.price / share, 0.0)),
            pattern=wish.pattern,
            subscribers=wishers.count if wish.group is None else 1,
            durable=wish.durable,
        )


def fetched(broker: str, buffer: BufferSettings) -> list[Subscription]:
    """Return what a broker asks of the others to keep it for who may come, at a price that stops nobody."""
    qos = QoS(delay_s_max=buffer.fetch_within_s, price=buffer.fetch_price)
    return [
        Subscription(id=f"fetch-{number}", home=broker, qos=qos, pattern=pattern, subscribers=0)
        for number, pattern in enumerate(buffer.fetch)
    ]


def _wish_of(grant: BrokerSubscription) -> _DemandKey:
    wish = grant.wish
    return _DemandKey(
        pattern=grant.pattern,
        filter_text=EVERYTHING.text if wish is None else wish.filter.text,
        delay_s_max=math.inf if wish is None else wish.qos.delay_s_max,
        durable=grant.durable,
        group=grant.group,
    )


def _price_of(grant: BrokerSubscription) -> float:
    return 1.0 if grant.wish is None else grant.wish.qos.price
