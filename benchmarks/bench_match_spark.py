"""How fast does Spark find who wants what with our index, beside Spark SQL's plain join and DuckDB's?

Workloads A and B (as in bench_matching.py) as Parquet files, the same for all. Ours is `match_files`, from
files to files: to read the subscriptions and build, save and map the index counts, as does writing the
answer. Each engine runs in a process of its own on two cores. Told are seconds of processor time per event,
of the process and all that it started (other work on the machine then matters little), and the time on the
wall. Slow peers get a sample of the events, as the table says; all that are compared must find the same for
the events of the smallest sample: DuckDB's range join the same pairs as ours, the others the same counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import executor_memory
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_matching import workload
from bench_pipeline import Watch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ROW_GROUP = 131_072
MASTER = "local[2]"
GRID_CELLS = 64
OURS = "ours, lists"
SAMPLES = {
    "Spark SQL, plain join": {"A": 4_000, "B": 100},
    "DuckDB, range join": {"A": 20_000, "B": 2_000},
    "DuckDB, grid key": {"A": 100_000, "B": 50_000},
}
GOALS = {
    "A": {"Spark SQL, plain join": 50.0, "DuckDB, range join": 20.0, "DuckDB, grid key": 1.0},
    "B": {"Spark SQL, plain join": 500.0, "DuckDB, range join": 100.0},
}
PARTS = ("A", "B", "large", "many", "growth", "memory")
GROWTH = (10_000, 100_000, 1_000_000, 5_000_000)
MANY = (max(GROWTH), 512.0, 100_000)  # subscriptions, the largest index in MB, events
MANY_QUICK = (500_000, 50.0, 20_000)
PAIRS_CHECKED = 200
Counts = NDArray[np.int64]


def tree_cpu_s(process: int) -> float:
    """Return the processor time of a process and all that it started, those that ended included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has ended meanwhile
        each = int(path.parent.name)
        parents[each], ticks[each] = int(fields[1]), sum(map(int, fields[11:15]))
    return sum(count for each, count in ticks.items() if is_below(each, process, parents)) / TICKS_PER_S


def is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process in parents and process != ancestor:
        process = parents[process]
    return process == ancestor


def write_tables(folder: Path, name: str, scale: float, events: int) -> None:
    """Write subscriptions (boxes in columns, nothing where there is no constraint) and events."""
    folder.mkdir(parents=True, exist_ok=True)
    work = workload(name, scale, 1)
    columns: dict[str, Any] = {"subscriber": np.arange(work.subscriptions, dtype=np.int32)}
    for attribute, low, high in zip(work.names(), work.lows, work.highs, strict=True):
        columns[f"{attribute}>="] = pa.array(low, from_pandas=True)
        columns[f"{attribute}<="] = pa.array(np.where(np.isnan(low), np.nan, high), from_pandas=True)
    pq.write_table(pa.table(columns), folder / "subscriptions.parquet", use_dictionary=False)
    chance = np.random.default_rng(7)
    schema = pa.schema([("event", pa.int64()), *((attribute, pa.float64()) for attribute in work.names())])
    with pq.ParquetWriter(folder / "events.parquet", schema, use_dictionary=False) as file:
        for first in range(0, events, ROW_GROUP):
            size = min(ROW_GROUP, events - first)
            values = [chance.random(size) for _ in work.names()]
            file.write_table(pa.table([pa.array(first + np.arange(size)), *values], schema=schema))


def attributes_of(folder: Path) -> list[str]:
    return [name for name in pq.read_schema(folder / "events.parquet").names if name != "event"]


def closed(attributes: list[str], quote: str = '"') -> str:
    """Return the subscriptions with ends far out where there are none, named low and high."""
    ends = ", ".join(
        f"coalesce({quote}{name}>={quote}, -1e300) AS low_{name}, "
        f"coalesce({quote}{name}<={quote}, 1e300) AS high_{name}"
        for name in attributes
    )
    return f"SELECT subscriber, {ends} FROM"


def between(attributes: list[str]) -> str:
    return " AND ".join(f"e.{name} BETWEEN s.low_{name} AND s.high_{name}" for name in attributes)


def run_ours(
    folder: Path, events: int, options: dict[str, Any]
) -> tuple[Callable[[], Counts], dict[str, Any]]:
    from betimes.pipeline.match.files import MatchRequest, match_files
    from betimes.pipeline.match.forms import Form
    from betimes.pipeline.match.plan import MatchSettings
    from betimes.pipeline.spark.session import open_session

    settings = {"spark.driver.memory": options.get("driver_memory", "1g")}
    is_cluster = options.get("cluster", False)
    master = executor_memory.MASTER if is_cluster else MASTER
    settings |= executor_memory.SETTINGS if is_cluster else {}
    spark = open_session("bench_match_spark", master=master, settings=settings)
    form = Form(options["form"])
    facts: dict[str, Any] = {}

    def match(place: str, out: Path) -> Any:
        request = MatchRequest(
            events=place,
            subscriptions=str(folder / "subscriptions.parquet"),
            out=out,
            form=form,
            settings=MatchSettings(index_mb_max=options.get("index_mb", 512.0)),
            overwrite=True,
        )
        return match_files(spark, request)

    def run() -> Counts:
        watch = executor_memory.ExecutorWatch()
        watch.start()
        found = match(str(folder / f"events-{events}.parquet"), folder / "out")
        facts.update(found.as_dict() | {"memory": watch.end()})
        return np.empty(0, np.int64)

    match(str(folder / "events-few.parquet"), folder / "out-few")  # warms up
    return run, facts


def counts_of_answer(folder: Path, events: int) -> Counts:
    """Return how many want each of the first events, as our answer has it."""
    counts = np.zeros(events, np.int64)
    for path in (folder / "out" / "matches").glob("*.parquet"):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(32_768):
                event = batch["event"].to_numpy()
                answer = batch.column(1)
                size = (
                    answer.to_numpy() if "count" in batch.schema.names else answer.value_lengths().to_numpy()
                )
                first = event < events
                counts[event[first]] = size[first]
    return counts


def run_spark_sql(
    folder: Path, events: int, _: dict[str, Any]
) -> tuple[Callable[[], Counts], dict[str, Any]]:
    from betimes.pipeline.spark.session import open_session

    # With the compiler that optimises, which our own sessions do without.
    settings = {"spark.driver.memory": "4g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    spark = open_session("bench_match_spark", master=MASTER, settings=settings)
    # Subscriptions are sent to all tasks, as a person who knows the sizes would ask for.
    joined = f"e JOIN s ON {between(attributes_of(folder))}"
    query = f"SELECT /*+ BROADCAST(s) */ e.event, count(*) AS count FROM {joined} GROUP BY e.event"
    spark.read.parquet(str(folder / "subscriptions.parquet")).createOrReplaceTempView("given")
    spark.sql(f"{closed(attributes_of(folder), '`')} given").createOrReplaceTempView("s")

    def counted(count: int) -> Counts:
        frame = spark.read.parquet(str(folder / "events.parquet")).where(f"event < {count}").repartition(4)
        frame.createOrReplaceTempView("e")
        rows = spark.sql(query).toArrow()
        counts = np.zeros(count, np.int64)
        counts[rows["event"].to_numpy()] = rows["count"].to_numpy()
        return counts

    counted(4)
    return lambda: counted(events), {}


def run_duckdb(
    folder: Path, events: int, options: dict[str, Any]
) -> tuple[Callable[[], Counts], dict[str, Any]]:
    import duckdb

    attributes = attributes_of(folder)
    connection = duckdb.connect()
    connection.execute("SET threads = 2; SET memory_limit = '12GB'")
    some = f"(SELECT * FROM '{folder}/events.parquet' WHERE event < {events})"
    wished = f"({closed(attributes)} '{folder}/subscriptions.parquet')"
    holds = between(attributes)
    facts: dict[str, Any] = {}
    if options.get("grid"):
        # Keys are the cells of a subscription's narrowest interval, and an event's cell on every attribute.
        values = ", ".join(f"{{'n': {n}, 'value': {name}}}" for n, name in enumerate(attributes))
        cell = f"floor(k.value * {GRID_CELLS})::INT AS cell"
        some = f"(SELECT e.*, k.n AS n, {cell} FROM {some} e, unnest([{values}]) u(k))"
        widths = ", ".join(
            f"{{'width': high_{name} - low_{name}, 'n': {n}, 'low': low_{name}, 'high': high_{name}}}"
            for n, name in enumerate(attributes)
        )
        first, last = (
            f"floor({end} * {GRID_CELLS})::INT" for end in ("greatest(k.low, 0)", "least(k.high, 1)")
        )
        narrowest = f"(SELECT *, list_min([{widths}]) AS k FROM {wished})"
        wished = (
            f"(SELECT * EXCLUDE k, unnest(range({first}, {last} + 1)) AS cell, k.n AS n FROM {narrowest})"
        )
        holds = f"e.n = s.n AND e.cell = s.cell AND {holds}"
    query = f"SELECT e.event, count(*) AS count FROM {some} e JOIN {wished} s ON {holds} GROUP BY e.event"

    def run() -> Counts:
        rows = connection.execute(query).fetchnumpy()
        counts = np.zeros(events, np.int64)
        counts[rows["event"]] = rows["count"]
        if not options.get("grid"):
            few = query.replace(f"event < {events}", f"event < {PAIRS_CHECKED}").replace(
                "count(*) AS count", "list(s.subscriber) AS wanted"
            )
            pairs = connection.execute(few).fetchall()
            facts["pairs"] = {str(event): sorted(map(int, wanted)) for event, wanted in pairs}
        return counts

    return run, facts


ENGINES = {"ours": run_ours, "spark": run_spark_sql, "duckdb": run_duckdb}


def serve(engine: str, folder: Path, events: int, options: dict[str, Any]) -> None:
    """Run one engine once, warmed up, and print what it took."""
    run, facts = ENGINES[engine](folder, events, options)
    cpu_s, began_s = tree_cpu_s(os.getpid()), time.perf_counter()
    counts = run()
    wall_s, cpu_s = time.perf_counter() - began_s, tree_cpu_s(os.getpid()) - cpu_s
    np.save(folder / "counts.npy", counts)
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "facts": facts}))


def measured(engine: str, folder: Path, events: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return what one engine took in a process of its own, and the most memory it held."""
    command = [sys.executable, __file__, "--serve", engine, str(folder), str(events), json.dumps(options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watch = Watch(process.pid)
    watch.start()
    told, _ = process.communicate()
    watch.end()
    if process.returncode:
        raise SystemExit(f"{engine} failed on {folder.name}")
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    us = {"cpu_us": found["cpu_s"] / events * 1e6, "wall_us": found["wall_s"] / events * 1e6}
    return found | us | {"events": events, "peak_mb": watch.peak_mb}


def first_events(folder: Path, events: int, name: str) -> None:
    """Write the first events as a table of their own."""
    target = folder / f"events-{name}.parquet"
    if not target.exists():
        with (
            pq.ParquetFile(folder / "events.parquet") as file,
            pq.ParquetWriter(target, file.schema_arrow) as out,
        ):
            left = events
            for batch in file.iter_batches(ROW_GROUP):
                out.write_batch(batch.slice(0, left))
                left -= min(left, batch.num_rows)
                if not left:
                    break


def ours(folder: Path, events: int, form: str, **options: Any) -> dict[str, Any]:
    first_events(folder, events, str(events))
    first_events(folder, 2000, "few")
    return measured("ours", folder, events, {"form": form} | options)


def compare(folder: Path, name: str, events: int, scale: float, index_mb: float = 512.0) -> dict[str, Any]:
    """Return what ours and the peers took on one workload; stop where they do not find the same."""
    found = {OURS: ours(folder, events, "lists", index_mb=index_mb)}
    lists = listed(folder, PAIRS_CHECKED)
    found["ours, counts"] = ours(folder, events, "counts", index_mb=index_mb)
    own = counts_of_answer(folder, events)
    for peer, sizes in SAMPLES.items():
        sample = max(int(min(sizes[name] / max(scale, 1.0), events)), 8)
        engine = "spark" if peer.startswith("Spark") else "duckdb"
        found[peer] = measured(engine, folder, sample, {"grid": peer.endswith("key")})
        if not np.array_equal(np.load(folder / "counts.npy"), own[:sample]):
            raise SystemExit(f"{peer} does not find what ours does on workload {name}")
        theirs = found[peer]["facts"].pop("pairs", None)
        if theirs is not None and {int(event): wanted for event, wanted in theirs.items()} != lists:
            raise SystemExit(f"{peer} does not find the pairs that ours does on workload {name}")
    return found


def listed(folder: Path, events: int) -> dict[int, list[int]]:
    """Return who wants each of the first events, as our answer has it."""
    found: dict[int, list[int]] = {}
    for path in (folder / "out" / "matches").glob("*.parquet"):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(32_768):
                for place in np.flatnonzero(batch["event"].to_numpy() < events).tolist():
                    found[batch["event"][place].as_py()] = sorted(batch["subscribers"][place].as_py())
    return found


def show(console: Console, title: str, found: dict[str, Any], goals: dict[str, float]) -> None:
    table = Table(title=title)
    for column in (
        "engine",
        "events",
        "processor µs per event",
        "times ours",
        "goal",
        "wall µs per event",
        "peak MB",
    ):
        table.add_column(column, justify="left" if column == "engine" else "right")
    base = next(iter(found.values()))["cpu_us"]  # ours
    for engine, each in found.items():
        ratio = each["cpu_us"] / base
        goal = goals.get(engine)
        verdict = "" if goal is None else f"{goal:g}: {'held' if ratio >= goal else 'not held'}"
        cells = (f"{each['events']:,}", f"{each['cpu_us']:,.1f}", f"{ratio:,.1f}", verdict)
        table.add_row(engine, *cells, f"{each['wall_us']:,.1f}", f"{each['peak_mb']:,.0f}")
    console.print(table)


def growth(place: Path, events: int, console: Console) -> list[dict[str, Any]]:
    """Return the time per event of workload B with ever more subscriptions, by one index and by cells."""
    rows = []
    for subscriptions in GROWTH:
        folder = place / f"growth-{subscriptions}"
        write_tables(folder, "B", subscriptions / 1_000_000, events)
        ways = {"one index": 4096.0} | ({"cells": 512.0} if subscriptions == max(GROWTH) else {})
        for way, index_mb in ways.items():
            found = ours(folder, events, "lists", index_mb=index_mb, driver_memory="2g")
            facts = found["facts"]
            tasks_s = facts["tasks_processor_s"]
            rows.append(
                {
                    "subscriptions": subscriptions,
                    "way": way,
                    "us": found["cpu_us"],
                    "tasks_us": None if tasks_s is None else tasks_s / events * 1e6,
                    "pairs_per_event": facts["pairs"] / events,
                    "peak_mb": found["peak_mb"],
                    "wall_s": found["wall_s"],
                    "plan": facts["plan"],
                }
            )
            console.print({key: value for key, value in rows[-1].items() if key != "plan"})
        shutil.rmtree(folder)
    return rows


def memory(place: Path, events: int, *, is_quick: bool, console: Console) -> dict[str, Any]:
    """Return what executors of a set size held: A and B with one index, and many subscriptions in cells."""
    many, index_mb, many_events = MANY_QUICK if is_quick else MANY
    workloads = {"A": ("A", 1.0), "B": ("B", 1.0), "many": ("B", many / 1_000_000)}
    found: dict[str, Any] = {}
    for name, (workload_name, scale) in workloads.items():
        write_tables(place / name, workload_name, scale, max(events, many_events))
        given_mb = index_mb if name == "many" else 512.0
        count = many_events if name == "many" else events
        told = ours(place / name, count, "lists", cluster=True, driver_memory="2g", index_mb=given_mb)
        found[name] = told["facts"]["memory"] | {
            "way": told["facts"]["plan"]["way"],
            "wall_s": told["wall_s"],
        }
        console.print(f"memory of executors, {name}, {count:,} events:", found[name])
        shutil.rmtree(place / name)
    return found


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4))
    one = [row for row in rows if row["way"] == "one index"]
    x = [row["subscriptions"] for row in one]
    axes.loglog(
        x, [row["tasks_us"] for row in one], "o-", label="one index: to match, and to write who wants it"
    )
    axes.loglog(x, [row["us"] for row in one], "s--", label="one index: in all, with building it")
    for row in rows:
        if row["way"] == "cells":
            axes.loglog(row["subscriptions"], row["us"], "D", label="divided: in all")
    first = one[0]
    axes.loglog(x, [first["tasks_us"] * each / x[0] for each in x], ":", color="grey", label="in proportion")
    axes.set_xlabel("subscriptions (workload B)")
    axes.set_ylabel("processor time per event, µs")
    axes.legend()
    axes.grid(visible=True, which="both", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the events, no large sets")
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--figure", type=Path, help="draw the growth there")
    parser.add_argument("--json", type=Path, help="write all numbers there")
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        engine, folder, events, options = arguments.serve
        serve(engine, Path(folder), int(events), json.loads(options))
        return
    parts = arguments.part or (["A", "B"] if arguments.quick else PARTS)
    events = 100_000 if arguments.quick else 1_000_000
    console, found = Console(width=130), dict[str, Any]()
    with tempfile.TemporaryDirectory(prefix="betimes-bench-") as name:
        for part in (each for each in ("A", "B") if each in parts):
            write_tables(Path(name) / part, part, 1.0, events)
            found[part] = compare(Path(name) / part, part, events, 1.0)
            show(console, f"workload {part}, all have the same files and answers", found[part], GOALS[part])
            shutil.rmtree(Path(name) / part)
        for part in ("A", "B") if "large" in parts else ():
            write_tables(Path(name) / part, part, 1.0, 10 * events)
            form = "counts" if part == "A" else "lists"  # the lists of A would fill 17 GB
            found[f"large {part}"] = ours(Path(name) / part, 10 * events, form)
            show(
                console,
                f"workload {part}, {10 * events:,} events, {form}",
                {f"ours, {form}": found[f"large {part}"]},
                {},
            )
            shutil.rmtree(Path(name) / part)
        if "many" in parts:
            subscriptions, index_mb, count = MANY_QUICK if arguments.quick else MANY
            scale = subscriptions / 1_000_000
            write_tables(Path(name) / "many", "B", scale, count)
            found["many"] = compare(Path(name) / "many", "B", count, scale**2, index_mb)
            title = f"{count:,} events, {subscriptions:,} subscriptions of B, divided"
            show(console, title, found["many"], {})
            console.print_json(json.dumps(found["many"][OURS]["facts"]["plan"]))
            shutil.rmtree(Path(name) / "many")
        if "growth" in parts:
            found["growth"] = growth(Path(name), 100_000, console)
            if arguments.figure:
                draw(found["growth"], arguments.figure)
        if "memory" in parts:
            found["memory"] = memory(Path(name), events, is_quick=arguments.quick, console=console)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
