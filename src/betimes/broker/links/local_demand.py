"""The demand of this broker's clients, as other brokers need to know it.

Subscriptions with the same pattern, filter, bound and durability are one row of demand, whose price is the
sum of theirs. Changes are collected and announced together. One member of a shared subscription gets each
message, so the group counts as one subscriber.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from betimes.broker.delivery.accounts import Account
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
    prices: Counter[tuple[Account, float]] = field(default_factory=Counter)  # as stated, by account
    count: int = 0
    is_announced: bool = False

    @property
    def price(self) -> float:
        """Return what its subscribers pay together, as their accounts allow it."""
        return math.fsum(
            [account.price_on_links(price) * count for (account, price), count in self.prices.items()]
        )


class LocalDemand:
    """The demand of all local subscriptions, and the rows that changed since they were last announced."""

    def __init__(self, broker: str, standing: Iterable[Subscription] = ()) -> None:
        self._broker = broker
        self._standing = list(standing)  # the broker's own subscriptions, until they are announced
        self._demands: dict[_DemandKey, _Demand] = {}
        self._changed: set[_DemandKey] = set()
        self._durable = 0
        self._last_id = 0

    @property
    def has_changed(self) -> bool:
        """Tell whether there are changes to announce."""
        return bool(self._changed or self._standing)

    @property
    def is_durable(self) -> bool:
        """Tell whether some subscription is one of a durable session."""
        return self._durable > 0

    def add(self, subscription: BrokerSubscription) -> None:
        """Add a subscription."""
        key = _key_of(subscription)
        demand = self._demands.get(key)
        if demand is None:
            self._last_id += 1
            wanted = EVERYTHING if subscription.options is None else subscription.options.filter
            demand = self._demands[key] = _Demand(str(self._last_id), wanted)
        demand.prices[_price_of(subscription)] += 1
        demand.count += 1
        self._durable += key.durable
        self._changed.add(key)

    def remove(self, subscription: BrokerSubscription) -> None:
        """Remove a subscription that was added before."""
        key = _key_of(subscription)
        demand = self._demands[key]
        price = _price_of(subscription)
        demand.prices[price] -= 1
        if not demand.prices[price]:
            del demand.prices[price]
        demand.count -= 1
        self._durable -= key.durable
        self._changed.add(key)

    def reprice(self, account: Account) -> None:
        """Announce the rows anew to which an account adds: its prices count for another amount."""
        for key, demand in self._demands.items():
            if any(each is account for each, _ in demand.prices):
                self._changed.add(key)

    def take_changes(self) -> tuple[list[Subscription], list[str]]:
        """Return the new and changed rows, and the ids of the rows that are replaced or gone."""
        added, self._standing = self._standing, []
        removed: list[str] = []
        for key in self._changed:
            demand = self._demands[key]
            if demand.is_announced:
                removed.append(demand.id)
            if demand.count:
                added.append(self._subscription(key, demand))
                demand.is_announced = True
            else:
                del self._demands[key]
        self._changed.clear()
        return added, removed

    def _subscription(self, key: _DemandKey, demand: _Demand) -> Subscription:
        share = 1 if key.group is None else demand.count
        return Subscription(
            id=demand.id,
            home=self._broker,
            filter=demand.filter,
            qos=QoS(delay_s_max=key.delay_s_max, price=demand.price / share),
            pattern=key.pattern,
            subscribers=demand.count if key.group is None else 1,
            durable=key.durable,
        )


def fetched(broker: str, buffer: BufferSettings) -> list[Subscription]:
    """Return the subscriptions by which a broker fills its replay buffer from other brokers.

    Their price is low, so that they do not delay the events of subscribers.
    """
    qos = QoS(delay_s_max=buffer.fetch_within_s, price=buffer.fetch_price)
    return [
        Subscription(id=f"fetch-{number}", home=broker, qos=qos, pattern=pattern, subscribers=0)
        for number, pattern in enumerate(buffer.fetch)
    ]


def _key_of(subscription: BrokerSubscription) -> _DemandKey:
    key = subscription.options
    return _DemandKey(
        pattern=subscription.pattern,
        filter_text=EVERYTHING.text if key is None else key.filter.text,
        delay_s_max=math.inf if key is None else key.qos.delay_s_max,
        durable=subscription.durable,
        group=subscription.group,
    )


def _price_of(subscription: BrokerSubscription) -> tuple[Account, float]:
    options = subscription.options
    return subscription.session.account, 1.0 if options is None else options.qos.price
