"""Link state: what every broker knows of every other broker, its links and its demand.

Each broker issues bulletins about itself and forwards those of others, so every bulletin reaches every
broker, by whatever links exist. A bulletin is newer than another by its epoch (a restart begins one) and
its number. A link bulletin states all links each time. Demand is stated once as a whole and then by its
changes. On a link, newer bulletins are sent in order, so changes arrive without a gap. If there is a gap,
`take_in` reports it and the link has to start again.

The module has no sockets: bulletins come in, bulletins to forward go out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from betimes.model.subscriptions import Advertisement, DemandVersion, Subscription
from betimes.model.topology import Link
from betimes.routing.routing_table import RoutingTable, routing_table
from betimes.routing.shortest_paths import shortest_paths

BROKERS_MAX = 10_000
DEMAND_ROWS_MAX = 1_000_000  # of one broker
UNKNOWN = DemandVersion()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBulletin:
    """The links by which a broker currently reaches its neighbours."""

    broker: str
    epoch: int
    number: int
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandBulletin:
    """The demand at a broker: all of it, or the changes since the previous bulletin."""

    broker: str
    epoch: int
    number: int
    is_whole: bool
    added: tuple[Subscription, ...] = ()
    removed: tuple[str, ...] = ()  # ids; they are removed before `added` is added


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherBulletin:
    """The current publishers of a broker."""

    broker: str
    epoch: int
    number: int
    advertisements: tuple[Advertisement, ...]


Bulletin = LinkBulletin | DemandBulletin | PublisherBulletin


class BulletinVerdict(Enum):
    """The result of taking in a bulletin."""

    NEW = "new"  # forward it
    OLD = "old"
    GAP = "gap"  # an earlier bulletin is missing
    OURS = "ours"  # it is of an earlier life of this broker: a newer epoch is needed


@dataclass(slots=True)
class _Known:
    links: LinkBulletin | None = None
    publishers: PublisherBulletin | None = None
    demand: DemandVersion = UNKNOWN
    is_remembered: bool = False  # of an earlier life of this broker: only a whole bulletin replaces it
    demand_rows: dict[str, Subscription] = field(default_factory=dict)


class LinkState:
    """One broker's collection of all brokers' bulletins, its own included."""

    def __init__(self, broker: str, epoch: int) -> None:
        self.broker = broker
        self.epoch = epoch
        self._known: dict[str, _Known] = {broker: _Known()}
        self._links_number = 0
        self._publishers_number = 0
        self._demand_number = 0

    def __len__(self) -> int:
        return len(self._known)

    @property
    def brokers(self) -> tuple[str, ...]:
        """Return all brokers that were ever heard of, in order of first mention."""
        return tuple(self._known)

    def epoch_of(self, broker: str) -> int:
        """Return the last known epoch of a broker; 0 if none is known."""
        known = self._known.get(broker)
        if known is None:
            return 0
        return max(known.demand[0], 0 if known.links is None else known.links.epoch)

    def demand_version(self, broker: str) -> DemandVersion:
        """Return which version of a broker's demand is known."""
        known = self._known.get(broker)
        return UNKNOWN if known is None else known.demand

    def remember(self, broker: str, version: DemandVersion) -> None:
        """Note which version of a broker's demand was known in an earlier life: none older counts."""
        self._known[broker] = _Known(demand=version, is_remembered=True)

    def demand_of(self, broker: str) -> Mapping[str, Subscription]:
        """Return the demand at a broker, by id."""
        known = self._known.get(broker)
        return {} if known is None else known.demand_rows

    def tell_links(self, links: Iterable[Link]) -> LinkBulletin:
        """Issue a bulletin of this broker's current links."""
        self._links_number += 1
        bulletin = LinkBulletin(
            broker=self.broker, epoch=self.epoch, number=self._links_number, links=tuple(links)
        )
        self._known[self.broker].links = bulletin
        return bulletin

    def tell_publishers(self, advertisements: Iterable[Advertisement]) -> PublisherBulletin:
        """Issue a bulletin of this broker's current publishers."""
        self._publishers_number += 1
        bulletin = PublisherBulletin(
            broker=self.broker,
            epoch=self.epoch,
            number=self._publishers_number,
            advertisements=tuple(advertisements),
        )
        self._known[self.broker].publishers = bulletin
        return bulletin

    def tell_demand(self, added: Iterable[Subscription], removed: Iterable[str]) -> DemandBulletin:
        """Issue a bulletin of the changes in this broker's demand."""
        own = self._known[self.broker]
        self._demand_number += 1
        bulletin = DemandBulletin(
            broker=self.broker,
            epoch=self.epoch,
            number=self._demand_number,
            is_whole=False,
            added=tuple(added),
            removed=tuple(removed),
        )
        _change(own.demand_rows, bulletin)
        own.demand = DemandVersion(self.epoch, self._demand_number)
        return bulletin

    def begin_epoch(self, epoch: int) -> None:
        """Begin a newer epoch and count from the start."""
        self.epoch = epoch
        self._links_number = self._publishers_number = 0
        self._known[self.broker].demand = DemandVersion(epoch, self._demand_number)

    def everything(self) -> list[Bulletin]:
        """Return the bulletins that bring a new neighbour up to date."""
        found: list[Bulletin] = []
        for name, known in self._known.items():
            found += [each for each in (known.links, known.publishers) if each is not None]
            epoch, number = known.demand
            if number and not known.is_remembered:
                rows = tuple(known.demand_rows.values())
                found.append(
                    DemandBulletin(broker=name, epoch=epoch, number=number, is_whole=True, added=rows)
                )
        return found

    def take_in(self, bulletin: Bulletin) -> BulletinVerdict:
        """Learn from a bulletin if it is new."""
        if bulletin.broker == self.broker:
            return BulletinVerdict.OURS if bulletin.epoch > self.epoch else BulletinVerdict.OLD
        known = self._known.get(bulletin.broker)
        if known is None:
            if len(self._known) >= BROKERS_MAX:
                return BulletinVerdict.OLD  # bounds the memory that other brokers can make this one use
            known = self._known[bulletin.broker] = _Known()
        age = DemandVersion(bulletin.epoch, bulletin.number)
        if isinstance(bulletin, LinkBulletin):
            if known.links is not None and age <= (known.links.epoch, known.links.number):
                return BulletinVerdict.OLD
            known.links = bulletin
            return BulletinVerdict.NEW
        if isinstance(bulletin, PublisherBulletin):
            if known.publishers is not None and age <= (known.publishers.epoch, known.publishers.number):
                return BulletinVerdict.OLD
            known.publishers = bulletin
            return BulletinVerdict.NEW
        return self._take_in_demand(known, bulletin, age)

    def advertisements(self) -> list[Advertisement]:
        """Return the publishers of the whole network that are known."""
        told = [each.publishers for each in self._known.values() if each.publishers is not None]
        return [each for bulletin in told for each in bulletin.advertisements]

    @staticmethod
    def _take_in_demand(known: _Known, bulletin: DemandBulletin, age: DemandVersion) -> BulletinVerdict:
        is_whole = bulletin.is_whole or bulletin.number == 1
        if age < known.demand or (age == known.demand and not (known.is_remembered and is_whole)):
            return BulletinVerdict.OLD
        if known.is_remembered and not is_whole:
            return BulletinVerdict.GAP
        if not is_whole and age != (known.demand.epoch, known.demand.number + 1):
            return BulletinVerdict.GAP
        if is_whole:
            known.demand_rows = {}
        _change(known.demand_rows, bulletin)
        known.demand = age
        known.is_remembered = False
        return BulletinVerdict.NEW

    def links(self) -> list[Link]:
        """Return the links of the whole network that both ends announce."""
        told = {
            (link.source, link.target): link
            for known in self._known.values()
            if known.links is not None
            for link in known.links.links
        }
        return [link for (source, target), link in told.items() if (target, source) in told]


def _change(rows: dict[str, Subscription], bulletin: DemandBulletin) -> None:
    for identifier in bulletin.removed:
        rows.pop(identifier, None)
    for row in bulletin.added:
        if len(rows) < DEMAND_ROWS_MAX or row.id in rows:
            rows[row.id] = row


def routes_by(
    bulletins: LinkState, broker: str, homes: Sequence[str], neighbours: Container[str]
) -> RoutingTable:
    """Return a broker's routes to all homes; of its own links, only those that are up count."""
    links = bulletins.links()
    names = dict.fromkeys([broker, *bulletins.brokers, *homes])
    for link in links:
        names[link.source] = names[link.target] = None
    paths = shortest_paths(list(names), links, homes)
    own = [link for link in links if link.source != broker or link.target in neighbours]
    return routing_table(broker, own, paths)
