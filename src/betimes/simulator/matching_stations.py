"""A network of brokers that match one event after the other (001, section VI), simulated.

Brokers and links serve first come, first served; links lose events; expired events may be dropped instead of
served. There is no choice, so the departure of an event is known as soon as it arrives at a station: only
arrivals need a place on the agenda, and a compiled loop processes millions of them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from betimes.kernels.compile import kernel
from betimes.kernels.types import Integers, Numbers
from betimes.model.distributions import (
    Constant,
    Exponential,
    Gamma,
    Histogram,
    Normal,
    NumberDistribution,
    Uniform,
)
from betimes.model.errors import SettingError
from betimes.model.statistics import NetworkStatistics, PublisherStatistics, WaitStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.contents import content_of
from betimes.prediction.journeys import NOWHERE, Journey, PlaceLayout
from betimes.prediction.service_times import matching_s, sending_s
from betimes.simulator.chance import stream

EVENTS_MAX = 10_000_000
BROKERS_MAX = 62  # the homes of an event's subscribers are bits of one number
SCV_TOLERANCE = 1e-9
EVERYTHING = -1  # a publisher's own broker gets all of its events, wanted or not
CONSTANT, UNIFORM, NORMAL, EXPONENTIAL, GAMMA = range(5)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StationsOutcome:
    """The outcome of a run: by subscription, and how long publishers' events waited at each place."""

    wanted: Integers
    in_time: Integers
    waits: tuple[WaitStatistics, ...]
    busy_share: dict[str, float]  # by station: share of the duration of the run

    @property
    def shares(self) -> Numbers:
        """Return the on-time share of every subscription; 1 where no event was wanted."""
        return np.where(self.wanted > 0, self.in_time / np.maximum(self.wanted, 1), 1.0)


def run_stations(
    statistics: NetworkStatistics,
    seed: int,
    *,
    duration_s: float,
    warm_up_s: float = 0.0,
    early_drop: bool = False,
) -> StationsOutcome:
    """Run a network whose parts behave as its statistics state; events of the warm-up are not counted.

    Gaps are exponential, uniform or constant where their squared coefficient of variation is 1, 1/3 or 0;
    gamma distributed otherwise.
    """
    if not 0.0 <= warm_up_s < duration_s < math.inf:
        raise SettingError("duration_s", duration_s, "must be longer than the warm-up, and end")
    events = sum(each.rate_per_s for each in statistics.publishers) * duration_s
    if events > EVENTS_MAX:
        raise SettingError("duration_s", duration_s, f"{events:.3g} events: at most {EVENTS_MAX:,}")
    world = _World(statistics)
    time_s, publisher, atom, lifetime_s = _published(statistics, world, seed, duration_s)
    waits = np.zeros((len(statistics.publishers), len(world.layout.places), 4))
    busy_s = np.zeros(len(world.layout.places))
    wanted, in_time = (np.zeros(len(statistics.subscriptions), np.int64) for _ in range(2))
    run_kernel(
        stream(seed, "stations"),
        (time_s, publisher, atom, lifetime_s),
        world.atoms,
        world.nodes,
        world.laws,
        world.subscribers,
        (warm_up_s, early_drop),
        (waits, busy_s, wanted, in_time),
    )
    return StationsOutcome(
        wanted=wanted,
        in_time=in_time,
        waits=_wait_statistics(statistics, world.layout, waits),
        busy_share={
            place.name: float(busy_s[number] / duration_s)
            for number, place in enumerate(world.layout.places)
            if place.is_station
        },
    )


class _World:
    """A network as flat arrays, for the kernel."""

    def __init__(self, statistics: NetworkStatistics) -> None:
        self.layout = PlaceLayout(statistics)
        if len(self.layout.brokers) > BROKERS_MAX:
            raise SettingError("brokers", len(self.layout.brokers), f"this takes at most {BROKERS_MAX}")
        subscriptions = statistics.subscriptions
        homes = [self.layout.home(each) for each in subscriptions]
        self.contents = [content_of(each, subscriptions) for each in statistics.publishers]
        self._homes = np.array(homes, np.int64)
        self.first_atom = np.cumsum([0, *(each.atoms for each in self.contents)])
        self.atoms = self._subscribers_by_atom(subscriptions)
        bounds_s = np.array([each.qos.delay_s_max for each in subscriptions])
        journeys = [self.layout.journey(each, set(homes)) for each in statistics.publishers]
        self.nodes = _joined_nodes(journeys, self._homes, bounds_s)
        services = _services(statistics, self.layout, journeys)
        reliability = np.array([place.reliability for place in self.layout.places])
        self.laws = (services, _law_rows([place.delay_s for place in self.layout.places]), reliability)
        links = [self.layout.last_links.get(each.id) for each in subscriptions]
        self.subscribers = (
            self._homes,
            bounds_s,
            np.array([1.0 if link is None else link.reliability for link in links]),
            _law_rows([Constant(0.0) if link is None else link.delay_s for link in links]),
        )

    def _subscribers_by_atom(self, subscriptions: Sequence[Subscription]) -> tuple[Integers, ...]:
        """Return the subscribers of each atom: where its list begins, the lists, the homes as a bit mask."""
        counts, lists, masks = [np.zeros(1, np.int64)], [], []
        for content in self.contents:
            found = [content.wanted(each) for each in subscriptions]
            matrix = np.array([np.zeros(content.atoms, np.bool_) if each is None else each for each in found])
            atoms, subscriber = np.nonzero(matrix.T)
            counts.append(np.bincount(atoms, minlength=content.atoms))
            lists.append(subscriber)
            mask = np.zeros(content.atoms, np.int64)
            np.bitwise_or.at(mask, atoms, np.int64(1) << self._homes[subscriber])
            masks.append(mask)
        return np.cumsum(np.concatenate(counts)), np.concatenate(lists), np.concatenate(masks)


def _joined_nodes(
    journeys: Sequence[Journey], homes: Integers, bounds_s: Numbers
) -> tuple[Integers, Integers, Integers, Integers, Integers, Numbers]:
    """Return all journeys' nodes in one table: each journey's first, places, children, homes behind."""
    starts = np.cumsum([0, *(len(each.places) for each in journeys)])
    places = np.concatenate([each.places for each in journeys])
    parents = np.concatenate(
        [
            np.where(each.parents == NOWHERE, NOWHERE, each.parents + start)
            for each, start in zip(journeys, starts, strict=False)
        ]
    )
    behind, longest_s = np.zeros(len(places), np.int64), np.zeros(len(places))
    for journey, start in zip(journeys, starts.tolist(), strict=False):
        for broker, node in enumerate(journey.node_of_broker.tolist()):
            if node != NOWHERE:
                behind[start + node] |= np.int64(1) << broker
                longest_s[start + node] = max(bounds_s[homes == broker], default=0.0)
    for node in range(len(places) - 1, -1, -1):
        if parents[node] != NOWHERE:
            behind[parents[node]] |= behind[node]
            longest_s[parents[node]] = max(longest_s[parents[node]], longest_s[node])
    behind[np.concatenate([each.brokers for each in journeys]) == NOWHERE] = EVERYTHING
    inner = np.flatnonzero(parents != NOWHERE)
    order = inner[np.argsort(parents[inner], kind="stable")]
    first_child = np.concatenate([[0], np.cumsum(np.bincount(parents[inner], minlength=len(places)))])
    return starts, places, first_child, order, behind, longest_s


def _services(statistics: NetworkStatistics, layout: PlaceLayout, journeys: Sequence[Journey]) -> Numbers:
    """Return the service distribution at each place [publisher, place]; a row of NaN: no station."""
    stored = len(statistics.subscriptions)
    table = np.full((len(journeys), len(layout.places), 4), math.nan)
    for number, publisher in enumerate(statistics.publishers):
        for place, each in enumerate(layout.places):
            if each.broker is not None:
                table[number, place] = _law_row(matching_s(each.broker, stored))
            elif each.link is not None and each.link.s_per_kb is not None:
                table[number, place] = _law_row(sending_s(each.link.s_per_kb, publisher.size_kb))
    return table


def _published(
    statistics: NetworkStatistics, world: _World, seed: int, duration_s: float
) -> tuple[Numbers, Integers, Integers, Numbers]:
    """Return time, publisher, atom and lifetime of all published events, in order of time."""
    parts = []
    for number, (publisher, content) in enumerate(zip(statistics.publishers, world.contents, strict=True)):
        time_s = _times(publisher, seed, duration_s)
        chance = stream(seed, "content", publisher.name)
        atom = chance.choice(content.atoms, size=len(time_s), p=content.masses / content.masses.sum())
        if content.deadline_shares is not None:
            lifetime_s = chance.choice(content.deadlines_s, size=len(time_s), p=content.deadline_shares)
        else:
            assert content.deadline_codes is not None
            lifetime_s = content.deadlines_s[content.deadline_codes[atom]]
        parts.append((time_s, np.full(len(time_s), number), atom + world.first_atom[number], lifetime_s))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    time_s, publisher_numbers, atoms, lifetimes_s = (column[order] for column in columns)
    return time_s, publisher_numbers.astype(np.int64), atoms.astype(np.int64), lifetimes_s


def _times(publisher: PublisherStatistics, seed: int, duration_s: float) -> Numbers:
    chance = stream(seed, "gaps", publisher.name)
    gap_s, scv = 1.0 / publisher.rate_per_s, publisher.gaps_scv
    count = int(duration_s / gap_s * 1.1) + 100
    first_s = 0.0
    if scv < SCV_TOLERANCE:
        gaps, first_s = np.full(count, gap_s), float(chance.uniform(-gap_s, 0.0))
    elif abs(scv - 1.0 / 3.0) < SCV_TOLERANCE:
        gaps = chance.uniform(0.0, 2.0 * gap_s, count)
    else:
        gaps = chance.gamma(1.0 / scv, scv * gap_s, count)
    times = first_s + np.cumsum(gaps)
    while times[-1] <= duration_s:  # too few events were drawn: add a whole stretch
        times = np.concatenate([times, times[-1] + np.cumsum(gaps[chance.permutation(count)])])
    return times[times <= duration_s]


def _law_rows(laws: Sequence[NumberDistribution]) -> Numbers:
    return np.array([_law_row(law) for law in laws]).reshape(-1, 4)


def _law_row(law: NumberDistribution) -> tuple[float, float, float, float]:
    """Return a distribution in the kernel's form: a kind and three numbers."""
    match law:
        case Constant(value=value):
            return CONSTANT, value, 0.0, 0.0
        case Uniform(low=low, high=high):
            return UNIFORM, low, high - low, 0.0
        case Normal(mean=mean, sd=sd, low=low):
            return NORMAL, mean, sd, low
        case Exponential(mean=mean):
            return EXPONENTIAL, mean, 0.0, 0.0
        case Gamma(mean=mean, shape=shape, least=least):
            return GAMMA, least, shape, (mean - least) / shape
        case Histogram():
            raise SettingError("delay", "a histogram", "this simulation draws from no histogram")


def _wait_statistics(
    statistics: NetworkStatistics, layout: PlaceLayout, sums: Numbers
) -> tuple[WaitStatistics, ...]:
    found = []
    for number, place in np.argwhere(sums[:, :, 0] > 0).tolist():
        count, waited, total, square = sums[number, place].tolist()
        found.append(
            WaitStatistics(
                publisher=statistics.publishers[number].name,
                station=layout.places[place].name,
                count=count,
                waited_share=waited / count,
                mean_s=total / count,
                variance=max(square / count - (total / count) ** 2, 0.0),
            )
        )
    return tuple(found)


@kernel
def draw(chance: np.random.Generator, law: Numbers) -> float:
    """Return one number from a distribution in that form."""
    if law[0] == CONSTANT:
        return float(law[1])
    if law[0] == EXPONENTIAL:
        return float(law[1] * chance.standard_exponential())
    if law[0] == UNIFORM:
        return float(law[1] + law[2] * chance.random())
    if law[0] == GAMMA:
        return float(law[1] + law[3] * chance.standard_gamma(law[2]))
    return float(max(law[1] + law[2] * chance.standard_normal(), law[3]))


@kernel
def run_kernel(chance, events, atoms, nodes, laws, subscribers, settings, results) -> None:  # type: ignore[no-untyped-def]
    """Process all arrivals in order of time: (time, event, node)."""
    time_s, publishers, event_atoms, lifetimes_s = events
    first_node, node_places, first_child, children, behind, longest_s = nodes
    services, delays, keeps = laws
    warm_up_s, early_drop = settings
    waits, busy_s, _, _ = results
    free_s = np.zeros(len(keeps))
    agenda = [(np.inf, np.int64(0), np.int64(0))]
    following = 0
    while following < len(time_s) or len(agenda) > 1:
        if following < len(time_s) and time_s[following] <= agenda[0][0]:
            now_s, event, node = time_s[following], np.int64(following), first_node[publishers[following]]
            following += 1
            count_wanted(event_atoms[event], now_s >= warm_up_s, atoms, results)
        else:
            now_s, event, node = heapq.heappop(agenda)
        place, publisher = node_places[node], publishers[event]
        leaves_s = now_s
        if not np.isnan(services[publisher, place, 0]):
            starts_s = max(now_s, free_s[place])
            if time_s[event] >= warm_up_s:
                note_wait(waits[publisher, place], starts_s - now_s)
            if early_drop and starts_s - time_s[event] > min(lifetimes_s[event], longest_s[node]):
                continue
            took_s = draw(chance, services[publisher, place])
            busy_s[place] += took_s
            leaves_s = free_s[place] = starts_s + took_s
        if keeps[place] < 1.0 and chance.random() >= keeps[place]:
            continue
        leaves_s += draw(chance, delays[place])
        atom = event_atoms[event]
        deliver(
            chance,
            place,
            atom,
            time_s[event],
            leaves_s,
            lifetimes_s[event],
            atoms,
            subscribers,
            settings,
            results,
        )
        for child in children[first_child[node] : first_child[node + 1]]:
            if behind[child] == EVERYTHING or behind[child] & atoms[2][atom]:
                heapq.heappush(agenda, (leaves_s, event, child))


@kernel
def note_wait(sums: Numbers, wait_s: float) -> None:
    """Add a wait to count, count of those that waited, sum and sum of squares."""
    sums[0] += 1.0
    sums[1] += wait_s > 0.0
    sums[2] += wait_s
    sums[3] += wait_s * wait_s


@kernel
def count_wanted(atom, counts, atoms, results) -> None:  # type: ignore[no-untyped-def]
    """Count an event for all its subscribers."""
    if counts:
        for subscriber in atoms[1][atoms[0][atom] : atoms[0][atom + 1]]:
            results[2][subscriber] += 1


@kernel
def deliver(chance, place, atom, born_s, now_s, lifetime_s, atoms, subscribers, settings, results) -> None:  # type: ignore[no-untyped-def]
    """Deliver an event to its subscribers at this broker, over their own links."""
    homes, bounds_s, keeps, last_delays = subscribers
    for subscriber in atoms[1][atoms[0][atom] : atoms[0][atom + 1]]:
        if homes[subscriber] != place or (keeps[subscriber] < 1.0 and chance.random() >= keeps[subscriber]):
            continue
        age_s = now_s + draw(chance, last_delays[subscriber]) - born_s
        if age_s <= min(lifetime_s, bounds_s[subscriber]) and born_s >= settings[0]:
            results[3][subscriber] += 1
