"""How long does `betimes.spark` take in sessions that Betimes did not open, and does it leave anything there?

1,000,000 events and 100,000 subscriptions (workload B of bench_matching.py), as Parquet files that a program
reads with its own session: classic and Spark Connect, as a batch and as a stream, into Parquet files. The
answers for a sample of the events are compared with those of brute force. Each kind of session is a process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from bench_match_spark import MASTER, attributes_of, tree_cpu_s, write_tables
from rich.console import Console
from rich.table import Table

from betimes.pipeline.spark.java import find_java

CHECKED = 500
CONNECT = "connect"
BATCHES = 4  # files that a batch of the stream reads


def brute_force(folder: Path) -> dict[int, list[int]]:
    """Return who wants each of the first events, by comparing it with every subscription."""
    wishes = pq.read_table(folder / "subscriptions.parquet")
    events = pq.read_table(folder / "events.parquet").slice(0, CHECKED)
    found: dict[int, list[int]] = {}
    for place, event in enumerate(events["event"].to_pylist()):
        holds = np.ones(wishes.num_rows, np.bool_)
        for name in attributes_of(folder):
            value = events[name][place].as_py()
            low, high = (wishes[f"{name}{end}"].to_numpy() for end in (">=", "<="))
            holds &= (np.isnan(low) | (low <= value)) & (np.isnan(high) | (value <= high))
        wanted = wishes["subscriber"].to_numpy()[holds].tolist()
        if wanted:
            found[event] = sorted(wanted)
    return found


def answered(folder: Path) -> dict[int, list[int]]:
    table = pq.read_table(folder, filters=[("event", "<", CHECKED)])
    return {row["event"]: sorted(row["subscribers"]) for row in table.to_pylist()}


def serve(folder: Path, kind: str) -> None:
    """Match in a session of this program's own, and print what it took."""
    from pyspark.sql import SparkSession

    from betimes.spark import match, prepare

    builder = SparkSession.builder
    # the address local[2] starts a Spark Connect server here
    spark = (builder.remote(MASTER) if kind == CONNECT else builder.master(MASTER)).getOrCreate()
    events = spark.read.parquet(str(folder / "events"))
    wishes = spark.read.parquet(str(folder / "subscriptions.parquet"))
    stream = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", BATCHES)
    settings = spark.conf.getAll
    warm = wishes.limit(100)
    match(events.limit(100), warm).matches.collect()
    told: dict[str, Any] = {}

    def measured(name: str, action: Callable[[], Any]) -> Any:
        cpu_s, began_s = tree_cpu_s(os.getpid()), time.perf_counter()
        found = action()
        told[name] = {"wall_s": time.perf_counter() - began_s, "cpu_s": tree_cpu_s(os.getpid()) - cpu_s}
        return found

    index = measured("prepare", lambda: prepare(wishes))
    told["index_mb"] = index.size_mb
    measured("batch", lambda: match(events, index).matches.write.parquet(str(folder / "batch")))

    def streamed() -> None:
        frame = match(stream.parquet(str(folder / "events")), index).matches
        sink = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "state"))
        sink.trigger(availableNow=True).start(str(folder / "stream")).awaitTermination()

    measured("stream", streamed)
    measured("release", index.release)
    told["settings_changed"] = spark.conf.getAll != settings
    spark.stop()
    told["left"] = sorted(path.name for path in Path(tempfile.gettempdir()).glob("betimes*"))
    print(json.dumps(told))


def environment(folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True)
    return dict(os.environ) | {
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(folder),
    }


def measured_in(folder: Path, kind: str, tables: Path) -> dict[str, Any]:
    """Return what a kind of session took, once its answers for the sample are right."""
    for name in ("events", "subscriptions.parquet"):
        (folder / name).symlink_to(tables / name)
    command = [sys.executable, __file__, "--serve", str(folder), kind]
    done = subprocess.run(command, env=environment(folder / "tmp"), stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    wanted = brute_force(tables)
    for way in ("batch", "stream"):
        if answered(folder / way) != wanted:
            raise SystemExit(f"{kind}, {way}: not what brute force finds")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        folder, kind = given.serve
        serve(Path(folder), kind)
        return
    table = Table(title=f"{given.events:,} events, {given.subscriptions:,} subscriptions")
    for column in ("session", "step", "wall s", "processor s"):
        table.add_column(column, justify="right" if column.endswith(" s") else "left")
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as place:
        tables = Path(place) / "tables"
        write_tables(tables, "B", given.subscriptions / 1_000_000, given.events)
        (tables / "events").mkdir()
        whole = pq.read_table(tables / "events.parquet")
        for part in range(2 * BATCHES):
            some = whole.slice(part * whole.num_rows // (2 * BATCHES), whole.num_rows // (2 * BATCHES))
            pq.write_table(some, tables / "events" / f"part-{part}.parquet")
        for kind in ("classic", CONNECT):
            folder = Path(place) / kind
            folder.mkdir()
            found = measured_in(folder, kind, tables)
            for step in ("prepare", "batch", "stream", "release"):
                table.add_row(kind, step, f"{found[step]['wall_s']:.1f}", f"{found[step]['cpu_s']:.1f}")
            print(kind, {name: found[name] for name in ("index_mb", "settings_changed", "left")})
    Console().print(table)


if __name__ == "__main__":
    main()
