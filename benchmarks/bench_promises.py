"""Does what is predicted of live brokers come true? Predicted on-time shares, and those measured afterwards.

Four real brokers with rate-limited links, publishers that send as they please, subscribers with bounds of
their own. First the network is watched; then `betimes control` learns from the telemetry, on Spark, and
predicts everybody's on-time share of what is to come; then that is measured over the time that follows. One
who asks for more than the network can give must be refused with the number; one who asks for less is
admitted, and must get it. No other broker predicts, so there is no peer to measure beside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import betimes
from betimes.client.addresses import read_address
from betimes.client.connection import Client
from betimes.client.errors import SubscriptionRefusedError
from betimes.control.rounds import Centre, one_round
from betimes.model.topology import Link
from betimes.pipeline.spark.session import open_session
from betimes.pipeline.tables.files import current_tables, read_arrow
from betimes.pipeline.tables.shapes import PREDICTIONS, RELIABILITY
from betimes.pipeline.telemetry.job import PipelineSettings, run_pipeline
from betimes.pipeline.telemetry.survey import Since
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

SECRET = "the secret of this benchmark"
TELEMETRY_EVERY_S = 2.0
RATE_KB_PER_S = 50.0
PAYLOAD_BYTES = 2000
EACH_PER_S = 4.5
BROKERS = ("west", "hub", "east", "south")
PUBLISHERS = (("p1", "west"), ("p2", "west"), ("p3", "west"), ("p4", "south"))
BOUNDS_S = (0.06, 0.09, 0.12, 0.15, 0.2, 0.3, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One subscriber: what was predicted, and what was measured afterwards."""

    subscriber: str
    bound_s: float
    predicted: float
    measured: float
    wanted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of it."""

    watched_s: float
    measured_s: float
    subscribers: list[Compared]
    difference_mean: float
    difference_most: float
    refused: str  # what was said to one who asked for too much
    asked: float  # what one who asked for less was promised
    got: float  # and what it got
    answer_ms: float


def network(ports: Sequence[int], telemetry: Path, secret: Path) -> FleetPlan:
    links = [
        Link(source="hub", target=each, s_per_kb_mean=1.0 / RATE_KB_PER_S)
        for each in ("west", "east", "south")
    ]
    options = ("--telemetry", str(telemetry), "--telemetry-share", "1.0")
    return FleetPlan(
        ports=dict(zip(BROKERS, ports, strict=True)),
        links=tuple(links),
        settings={"anonymous": True, "control_secret_file": str(secret)},
        options=(*options, "--telemetry-every", f"{TELEMETRY_EVERY_S}s"),
    )


async def publish_for_ever(client: Client, name: str, chance: random.Random) -> None:
    payload = b"x" * PAYLOAD_BYTES
    while True:
        await asyncio.sleep(chance.expovariate(EACH_PER_S))
        await client.publish(
            f"news/{name}", payload, attributes={"level": round(chance.uniform(0.0, 10.0), 3)}
        )


async def read_for_ever(subscription: betimes.Subscription) -> None:
    async for _ in subscription:
        pass


async def trial(
    plan: FleetPlan, spark: SparkSession, folder: Path, watched_s: float, measured_s: float
) -> Report:
    url = {name: f"mqtt://{HOST}:{port}" for name, port in plan.ports.items()}
    telemetry, tables = folder / "telemetry", folder / "tables"
    chance = random.Random(7)
    bounds = {f"s{number}": bound_s for number, bound_s in enumerate(BOUNDS_S)}
    async with AsyncExitStack() as stack:
        tasks: list[asyncio.Task[None]] = []
        for number, (name, bound_s) in enumerate(bounds.items()):
            home = ("east", "south")[number % 2]
            client = await stack.enter_async_context(betimes.connect(f"{url[home]}?client_id={name}"))
            wish = client.subscribe("news/#", filter=f"level < {4 + number % 3 * 2}", max_delay=bound_s)
            tasks.append(asyncio.create_task(read_for_ever(await stack.enter_async_context(wish))))
        await asyncio.sleep(2.0)  # until all brokers know of them
        for name, home in PUBLISHERS:
            client = await stack.enter_async_context(betimes.connect(f"{url[home]}?client_id={name}"))
            tasks.append(asyncio.create_task(publish_for_ever(client, name, random.Random(chance.random()))))
        await asyncio.sleep(watched_s + TELEMETRY_EVERY_S)
        brokers = [read_address(each) for each in url.values()]
        since = PipelineSettings(since=Since(last_s=watched_s))
        centre = Centre(telemetry=telemetry, tables=tables, brokers=brokers, secret=SECRET)
        done = await asyncio.to_thread(one_round, spark, centre, since)
        assert not done.problems, done.problems
        rows = read_arrow(PREDICTIONS, current_tables(tables)).to_pylist()
        predicted = {row["subscriber"]: row["on_time_share"] for row in rows}
        await asyncio.sleep(1.0)  # until the model is worked out everywhere
        asker = await stack.enter_async_context(betimes.connect(f"{url['east']}?client_id=asker"))
        refused, answer_ms = await ask_too_much(asker)
        asked = 0.8
        client = await stack.enter_async_context(betimes.connect(f"{url['east']}?client_id=modest"))
        modest = client.subscribe("news/#", filter="level < 4", max_delay=0.5, reliability=asked)
        tasks.append(asyncio.create_task(read_for_ever(await stack.enter_async_context(modest))))
        await asyncio.sleep(measured_s + TELEMETRY_EVERY_S)
        since = PipelineSettings(since=Since(last_s=measured_s))
        await asyncio.to_thread(run_pipeline, spark, telemetry, folder / "after", since)
        for task in tasks:
            task.cancel()
    measured = {
        row["subscriber"]: row
        for row in read_arrow(RELIABILITY, current_tables(folder / "after")).to_pylist()
    }
    compared = [
        Compared(
            subscriber=name,
            bound_s=bound_s,
            predicted=predicted[name],
            measured=measured[name]["on_time_share"],
            wanted=measured[name]["wanted"],
        )
        for name, bound_s in bounds.items()
    ]
    off = [abs(each.predicted - each.measured) for each in compared]
    return Report(
        watched_s=watched_s,
        measured_s=measured_s,
        subscribers=compared,
        difference_mean=sum(off) / len(off),
        difference_most=max(off),
        refused=refused,
        asked=asked,
        got=measured["modest"]["on_time_share"],
        answer_ms=answer_ms,
    )


async def ask_too_much(client: Client) -> tuple[str, float]:
    """Ask for what cannot be; return what the broker says, and how long that took."""
    began_s = time.perf_counter()
    try:
        async with client.subscribe("news/#", max_delay=0.06, reliability=0.99):
            return "", 0.0
    except SubscriptionRefusedError as error:
        return str(error), 1000.0 * (time.perf_counter() - began_s)


def run(watched_s: float, measured_s: float) -> Report:
    """Run it all on this machine."""
    spark = open_session("betimes promises")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        secret = folder / "secret"
        secret.write_text(SECRET)
        plan = network(free_ports(len(BROKERS)), folder / "telemetry", secret)
        with Fleet(plan):
            return asyncio.run(trial(plan, spark, folder, watched_s, measured_s))


def main() -> None:
    """Print what was predicted and what came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="30 seconds each instead of two minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no broker is left
    span_s = 30.0 if options.quick else 120.0
    report = run(span_s, span_s)
    if options.json:
        print(json.dumps(asdict(report)))
        return
    table = Table(title=f"On-time shares: learned over {span_s:g} s, measured over the next {span_s:g} s")
    for column in ("subscriber", "bound", "predicted", "measured", "wanted"):
        table.add_column(column, justify="left" if column == "subscriber" else "right")
    for each in report.subscribers:
        table.add_row(
            each.subscriber,
            f"{each.bound_s:g} s",
            f"{each.predicted:.3f}",
            f"{each.measured:.3f}",
            f"{each.wanted:.0f}",
        )
    console = Console()
    console.print(table)
    console.print(f"mean difference {report.difference_mean:.3f}, at most {report.difference_most:.3f}")
    console.print(f"asked for 0.99 within 60 ms: {report.refused} ({report.answer_ms:.0f} ms)")
    console.print(f"asked for {report.asked:g} within 500 ms: admitted, and got {report.got:.3f}")


if __name__ == "__main__":
    main()
