"""How fast is the simulator, side by side with SimPy doing the same queueing?

The paper's network (000: PSD, 15 messages a minute and publisher, 2 hours). SimPy's half is written as one
would write it there: a `Store` and a process per link, a process per publisher. Both get the same
topology, the same events, the same matching and the same drawn transfer times, so under FIFO
they must deliver the same messages. Times are CPU seconds of one core, all set-up included.
SimPy's half keeps no account of drops, subscribers or the order within flows, and never re-routes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import simpy
from rich.console import Console
from rich.table import Table

from betimes.experiments.wang.network import CONGESTED, PSD, paper_world
from betimes.model.events import Event, EventId
from betimes.model.topology import Scenario
from betimes.routing.routing_table import routing_tables
from betimes.scheduling.demand_table import Demand, DemandTable
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import DrawnLink, SimulatedNetwork
from betimes.simulator.worlds import Publications, make_scenario, publications

SIMPY = "SimPy, fifo"
STRATEGIES = ("fifo", "eb", "late-binding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one simulator did in how much time."""

    name: str
    cpu_s: float
    steps: int
    messages: int
    delivered: int

    @property
    def messages_per_s(self) -> float:
        return self.messages / self.cpu_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parcel:
    """A message in SimPy's half: an event, when it was born, and the homes this copy goes to."""

    event: Event
    demand: Demand
    born_s: float
    homes: tuple[str, ...]

    def bound_s(self) -> float:
        """Return the last moment at which anyone behind it still wants it, counted from its birth."""
        at_home = self.demand.at_home
        return max(each.delay_s_allowed(self.event) for home in self.homes for each in at_home[home])


class SimpyNetwork:
    """The paper's network under FIFO, in SimPy."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.env = simpy.Environment()
        self.messages = 0
        self.delivered = 0
        self._scenario = scenario
        homes = tuple(sorted({each.home for each in scenario.subscriptions}))
        self._demand = DemandTable(homes, scenario.subscriptions)
        access = [each.access for each in scenario.publishers if each.access is not None]
        links = (*scenario.links, *access)
        names = (*scenario.brokers, *(link.source for link in access))
        self._next_hop: dict[str, dict[str, str]] = {}
        for name, table in routing_tables(names, links, homes).items():
            self._next_hop[name] = {
                home: neighbour
                for row, neighbour in enumerate(table.neighbours)
                for home, primary in zip(table.destinations, table.primary[row].tolist(), strict=True)
                if primary
            }
        self._stores = {(link.source, link.target): simpy.Store(self.env) for link in links}
        for link in links:
            self.env.process(self._serve(DrawnLink(link, seed), self._stores[link.source, link.target]))
        for published in publications(scenario, seed):
            self.env.process(self._publish(published))

    def run(self) -> None:
        """Run until nothing is left to do: the links then wait for messages that never come."""
        self.env.run()

    def _publish(self, published: Publications) -> Iterator[Any]:
        access = published.publisher.access
        origin = access.source if access is not None else published.publisher.broker
        columns = (published.time_s, published.size_kb, published.deadline_s)
        rows = zip(*(column.tolist() for column in columns), published.attributes, strict=True)
        for number, (time_s, size_kb, deadline_s, attributes) in enumerate(rows, start=1):
            yield self.env.timeout(time_s - self.env.now)
            event = Event(
                id=EventId(origin, number), attributes=attributes, size_kb=size_kb, deadline_s=deadline_s
            )
            demand = self._demand.demand(event)
            homes = tuple(demand.at_home)
            self._accept(origin, Parcel(event=event, demand=demand, born_s=self.env.now, homes=homes))

    def _accept(self, broker: str, parcel: Parcel) -> None:
        onward: dict[str, list[str]] = {}
        for home in parcel.homes:
            if home == broker:
                age_s = self.env.now - parcel.born_s
                found = parcel.demand.at_home[home]
                self.delivered += sum(age_s <= each.delay_s_allowed(parcel.event) for each in found)
            else:
                onward.setdefault(self._next_hop[broker][home], []).append(home)
        for neighbour, homes in onward.items():
            copy = Parcel(event=parcel.event, demand=parcel.demand, born_s=parcel.born_s, homes=tuple(homes))
            self._stores[broker, neighbour].put(copy)

    def _serve(self, link: DrawnLink, store: simpy.Store) -> Iterator[Any]:
        env, target, processing_s = self.env, link.link.target, self._scenario.processing_s
        while True:
            parcel: Any = yield store.get()
            if env.now - parcel.born_s > parcel.bound_s():
                continue
            yield env.timeout(link.transfer_s(parcel.event))
            self.messages += 1
            env.timeout(processing_s, parcel).callbacks.append(
                lambda processed: self._accept(target, processed.value)
            )


def run_simpy(scenario: Scenario, seed: int) -> Measured:
    start_s = time.process_time()
    network = SimpyNetwork(scenario, seed)
    network.run()
    cpu_s = time.process_time() - start_s
    steps = next(network.env._eid)  # everything SimPy ever scheduled has a number
    return Measured(
        name=SIMPY, cpu_s=cpu_s, steps=steps, messages=network.messages, delivered=network.delivered
    )


def run_ours(scenario: Scenario, strategy: str, seed: int) -> Measured:
    start_s = time.process_time()
    outcome = SimulatedNetwork(scenario, strategy_named(strategy), seed).run()
    return Measured(
        name=f"Betimes, {strategy}",
        cpu_s=time.process_time() - start_s,
        steps=outcome.steps,
        messages=outcome.messages,
        delivered=outcome.in_time,
    )


def quickest(measure: Callable[[], Measured], repeats: int) -> Measured:
    """Return the run that was disturbed least; all do the same."""
    return min((measure() for _ in range(repeats)), key=lambda each: each.cpu_s)


def measure(duration_s: float, repeats: int, seed: int) -> list[Measured]:
    warm_up = make_scenario(paper_world(PSD, CONGESTED, 30.0), seed)
    for strategy in STRATEGIES:
        run_ours(warm_up, strategy, seed)  # compiles, or loads what is compiled
    run_simpy(warm_up, seed)
    scenario = make_scenario(paper_world(PSD, CONGESTED, duration_s), seed)
    found = [quickest(lambda: run_simpy(scenario, seed), repeats)]
    for strategy in STRATEGIES:
        found.append(quickest(lambda name=strategy: run_ours(scenario, name, seed), repeats))  # type: ignore[misc]
    return found


def show(found: list[Measured], duration_s: float) -> None:
    simpy_found, fifo = found[0], found[1]
    title = f"The paper's network, PSD, rate {CONGESTED:g}, {duration_s / 3600:g} h (CPU seconds of one core)"
    table = Table(title=title)
    for heading in ("simulator", "CPU s", "events/s", "messages", "messages/s", "times SimPy's", "in time"):
        table.add_column(heading, justify="left" if heading == "simulator" else "right")
    for each in found:
        table.add_row(
            each.name,
            f"{each.cpu_s:.2f}",
            f"{each.steps / each.cpu_s:,.0f}",
            f"{each.messages:,}",
            f"{each.messages_per_s:,.0f}",
            f"{each.messages_per_s / simpy_found.messages_per_s:.2f}",
            f"{each.delivered:,}",
        )
    console = Console()
    console.print(table)
    agree = "the same" if agreed(found) else "NOT the same"
    console.print(
        f"Delivered in time under FIFO: SimPy {simpy_found.delivered:,}, Betimes {fifo.delivered:,}: {agree}."
    )


def agreed(found: list[Measured]) -> bool:
    """Tell whether both halves did the same under FIFO."""
    return (found[0].delivered, found[0].messages) == (found[1].delivered, found[1].messages)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, once")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    duration_s, repeats = (720.0, 1) if options.quick else (7200.0, 3)
    found = measure(duration_s, repeats, options.seed)
    if options.json:
        runs = [{**asdict(each), "messages_per_s": each.messages_per_s} for each in found]
        ratios = {each.name: each.messages_per_s / found[0].messages_per_s for each in found[1:]}
        print(
            json.dumps(
                {"duration_s": duration_s, "runs": runs, "times_simpy": ratios, "agree": agreed(found)}
            )
        )
    else:
        show(found, duration_s)
    if not agreed(found):
        raise SystemExit("the two simulators disagree under FIFO")


if __name__ == "__main__":
    main()
