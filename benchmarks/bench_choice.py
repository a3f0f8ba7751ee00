"""How long does a broker take to choose its next message, with 1,000 waiting for 40 subscribers each?

The target is 2 ms. Three workloads: *PSD*, where subscribers of one home share the publisher's bound and are
one row; *own bounds*, where nothing can be grouped and every subscriber is a row; and *tight bounds*, the
same where every chance is in doubt, so that no comparison can be cut short. All of them lie behind the link
that falls free, and late binding weighs each against three other links.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from betimes.kernels.types import Numbers
from betimes.model.events import Event, EventId
from betimes.model.subscriptions import QoS, Subscription
from betimes.scheduling.appraisal import FIXED_S, OPEN, S_PER_KB_MEAN, S_PER_KB_SD, WAIT_S, WAY_FACTS
from betimes.scheduling.demand_table import DemandTable
from betimes.scheduling.output_queue import OutputQueue
from betimes.scheduling.strategies import STRATEGIES, Strategy

TARGET_MS = 2.0
MESSAGES, SUBSCRIBERS, HOMES, LINKS = 1000, 40, 16, 4
NOW_S = 100.0
WORKLOADS = ("PSD", "own bounds", "tight bounds")


def network_ways(chance: np.random.Generator) -> Numbers:
    """Return four links that each lead to every home over three links of the paper's kind."""
    ways = np.zeros((WAY_FACTS, LINKS, HOMES))
    ways[OPEN] = 1.0
    ways[FIXED_S] = 3 * 0.002
    ways[S_PER_KB_MEAN] = chance.uniform(0.050, 0.100, (3, LINKS, HOMES)).sum(axis=0)
    ways[S_PER_KB_SD] = 0.020 * math.sqrt(3)
    ways[WAIT_S] = chance.uniform(0.0, 5.0, (LINKS, HOMES))
    return ways


def filled_queue(workload: str, chance: np.random.Generator) -> OutputQueue:
    """Return a queue of messages some seconds old, all for the same subscribers."""
    own = workload != "PSD"
    step_s, age_s_max = (0.2, 5.0) if workload == "tight bounds" else (1.0, 10.0)
    subscriptions = [
        Subscription(
            id=f"s{number}",
            home=f"b{number % HOMES}",
            qos=QoS(delay_s_max=14.0 + step_s * number if own else math.inf, price=float(1 + number % 3)),
        )
        for number in range(SUBSCRIBERS)
    ]
    table = DemandTable([f"b{number}" for number in range(HOMES)], subscriptions)
    queue = OutputQueue()
    for number in range(MESSAGES):
        deadline_s = math.inf if own else float(chance.uniform(15.0, 30.0))
        event = Event(id=EventId("p", number + 1), size_kb=50.0, deadline_s=deadline_s)
        born_s = NOW_S - float(chance.uniform(0.0, age_s_max))
        queue.put(event, table.demand(event).rows, np.arange(HOMES), born_s=born_s, now_s=NOW_S)
    return queue


def choice_ms(queue: OutputQueue, strategy: Strategy, ways: Numbers, repeats: int) -> float:
    """Return the median time of one choice, in milliseconds; choosing takes nothing out."""
    free_at_s = NOW_S + np.linspace(0.0, 4.0, LINKS)
    times_ms = []
    for _ in range(repeats + 1):  # the first may have to compile
        start = time.perf_counter()
        queue.choose(strategy, 0, ways, free_at_s, 1.0, 3.75, NOW_S)
        times_ms.append((time.perf_counter() - start) * 1000.0)
    return statistics.median(times_ms[1:])


def measure(repeats: int) -> dict[str, dict[str, float]]:
    """Return the median milliseconds by strategy and workload."""
    chance = np.random.default_rng(1)
    ways = network_ways(chance)
    queues = {workload: filled_queue(workload, chance) for workload in WORKLOADS}
    return {
        name: {workload: choice_ms(queue, strategy, ways, repeats) for workload, queue in queues.items()}
        for name, strategy in STRATEGIES.items()
    }


def show(found: dict[str, dict[str, float]]) -> None:
    table = Table(
        title=f"One choice among {MESSAGES:,} messages for {SUBSCRIBERS} subscribers each (median ms)"
    )
    table.add_column("strategy")
    for workload in WORKLOADS:
        table.add_column(workload, justify="right")
    table.add_column(f"under {TARGET_MS:g} ms")
    for name, times_ms in found.items():
        kept = max(times_ms.values()) < TARGET_MS
        table.add_row(name, *(f"{times_ms[each]:.3f}" for each in WORKLOADS), "yes" if kept else "no")
    Console().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args(arguments)
    found = measure(repeats=50 if options.quick else 500)
    if options.json:
        print(json.dumps({"target_ms": TARGET_MS, "median_ms": found}))
    else:
        show(found)


if __name__ == "__main__":
    main()
