"""How close does a twin come to a live network, before and after a real change?

Four brokers in a ring with limited links; three publishers; eight subscribers with filters, bounds, prices.
Part 1 runs and writes telemetry; the pipeline makes tables of it, and a twin is fitted. Part 2 runs as part 1
did, part 3 with everything published `--times` as fast: what the twin says of both is held against what is
measured there.
`.venv/bin/python benchmarks/twin_live.py --seconds 60 --times 1.5`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from pathlib import Path

import betimes
from betimes.client.connection import Client
from betimes.model.events import Value
from betimes.model.statistics import subscriber_of
from betimes.model.topology import Link
from betimes.pipeline.spark.session import open_session
from betimes.pipeline.telemetry.job import run_pipeline
from betimes.pipeline.twin.twin import measured_on_time, twin_of
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.traces import Twin, play, spreads
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

RING = ("north", "east", "south", "west")
KB_PER_S = 40.0
PUBLISHERS = {"north": 14.0, "east": 10.0, "west": 8.0}  # events a second
SIZE_BYTES = 2_000
SUBSCRIBERS = (
    ("control", "south", "speed < 20", 0.3, 10.0),
    ("trucks", "south", "kind = 'truck'", 0.6, 4.0),
    ("map", "south", "TRUE", 2.0, 1.0),
    ("fast", "east", "speed > 100", 0.5, 5.0),
    ("log-east", "east", "TRUE", 3.0, 1.0),
    ("slow-west", "west", "speed < 40", 0.5, 3.0),
    ("log-west", "west", "TRUE", 3.0, 1.0),
    ("cars-north", "north", "kind = 'car' AND speed > 60", 0.4, 2.0),
)
SEEDS = (1, 2, 3, 4, 5)
STRATEGY = strategy_named("late-binding")


async def publish(port: int, name: str, rate_per_s: float, seconds: float) -> None:
    """Publish at random times, the same each time."""
    chance = random.Random(name)
    async with betimes.connect(f"mqtt://{HOST}:{port}", client_id=f"publisher-{name}") as client:
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        end_s = due_s + seconds
        while (due_s := due_s + chance.expovariate(rate_per_s)) < end_s:
            await asyncio.sleep(max(due_s - loop.time(), 0.0))
            attributes: dict[str, Value] = {
                "speed": chance.uniform(0.0, 120.0),
                "kind": chance.choice(["car", "car", "truck"]),
            }
            await client.publish(f"traffic/{name}", b"x" * SIZE_BYTES, attributes=attributes)


async def listen(client: Client, wanted: str, within_s: float, price: float) -> None:
    """Subscribe, and read until told to end."""
    async for _ in client.subscribe("traffic/#", filter=wanted, max_delay=within_s, price=price):
        pass


async def talk(ports: dict[str, int], times: float, seconds: float) -> None:
    """Let everybody publish and listen for a while."""
    async with asyncio.TaskGroup() as group:
        listening = [group.create_task(_subscribed(ports, each)) for each in SUBSCRIBERS]
        await asyncio.sleep(3.0)
        await asyncio.gather(
            *(publish(ports[name], name, rate * times, seconds) for name, rate in PUBLISHERS.items())
        )
        await asyncio.sleep(4.0)
        for task in listening:
            task.cancel()


async def _subscribed(ports: dict[str, int], terms: tuple[str, str, str, float, float]) -> None:
    name, home, wanted, within_s, price = terms
    async with betimes.connect(f"mqtt://{HOST}:{ports[home]}", client_id=name) as client:
        await listen(client, wanted, within_s, price)


def live(folder: Path, times: float, seconds: float) -> None:
    """Run a part on live brokers that write telemetry."""
    pairs = [(RING[place], RING[(place + 1) % len(RING)]) for place in range(len(RING))]
    links = [Link(source=a, target=b, s_per_kb_mean=1.0 / KB_PER_S) for a, b in pairs]
    links += [Link(source=b, target=a, s_per_kb_mean=1.0 / KB_PER_S) for a, b in pairs]
    plan = FleetPlan(
        ports=dict(zip(RING, free_ports(len(RING)), strict=True)),
        links=tuple(links),
        settings={"anonymous": True},
        options=("--telemetry", str(folder), "--telemetry-share", "1"),
    )
    with Fleet(plan):
        asyncio.run(talk(dict(plan.ports), times, seconds))


def compared(twin: Twin, tables: Path) -> dict[str, tuple[float, float]]:
    """Return for each subscriber what the twin says, and what was measured."""
    said = spreads([play(twin, STRATEGY, seed) for seed in SEEDS]).subscribers
    measured = measured_on_time(tables)
    names = {each.id: (subscriber_of(each), each.home) for each in twin.scenario.subscriptions}
    return {
        names[each][0]: (share, measured[names[each]][0])
        for each, (share, _) in said.items()
        if names[each] in measured
    }


def main() -> None:
    """Run all three parts, and print what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of each part")
    parser.add_argument("--times", type=float, default=1.5, help="as fast, in part 3")
    parser.add_argument("--json", type=Path, help="write the numbers there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number, times in ((1, 1.0), (2, 1.0), (3, asked.times)):
            print(f"part {number}: {asked.seconds:g} s, x{times:g}", flush=True)
            live(folder / f"telemetry-{number}", times, asked.seconds)
        spark = open_session("betimes twin benchmark")
        for number in (1, 2, 3):
            run_pipeline(spark, folder / f"telemetry-{number}", folder / f"tables-{number}")
        spark.stop()
        twin = twin_of(folder / "tables-1")
        found = {
            "before": compared(twin, folder / "tables-2"),
            "after": compared(twin.faster(asked.times), folder / "tables-3"),
        }
    for part, shares in found.items():
        for name, (said, measured) in shares.items():
            print(
                f"{part}: {name}: twin {said:.3f}, measured {measured:.3f}, off by {abs(said - measured):.3f}"
            )
        off = [abs(said - measured) for said, measured in shares.values()]
        print(f"{part}: off by {sum(off) / len(off):.3f} on average, {max(off):.3f} at most")
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
