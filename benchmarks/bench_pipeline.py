"""How long do 50 million rows of telemetry take to become distributions of links, beside DuckDB?

Both read the same files, in the layout of `received`, and count for each of 200 links how the time per
kilobyte is spread: a histogram, with the messages, their sum and the sum of squares in each cell. Ours runs
on Spark `local[2]`, DuckDB with two threads. Each is run several times in turn, the first of them not counted
(Spark starts its workers then), and the medians are compared; means and deviations must agree.
The goal is at most four times DuckDB's time. Memory is the peak of what the processes hold at a time, for
ours Python, Java and Spark's Python workers; pages that they share count for each of them.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from betimes.pipeline.telemetry.histograms import Measure, spreads
from betimes.telemetry.files import table_schema

ROWS = 50_000_000
ROWS_PER_PART = 250_000
LINKS = 200
CELLS = 200
RATIO_MAX = 4.0
SPEED = Measure(keys=("neighbour", "broker"), value="transfer_s", divisor="size_kb")
WATCH_EVERY_S = 0.05
MEMORY_LINE = "VmRSS:"
RUN, END = "run", "end"

DUCKDB_QUERY = """
SELECT neighbour, broker, least(greatest(floor(s_per_kb / {width}), -1), {cells}) AS cell,
       count(*) AS count, sum(s_per_kb) AS sum, sum(s_per_kb * s_per_kb) AS squares
FROM (SELECT neighbour, broker, transfer_s / size_kb AS s_per_kb FROM '{files}')
GROUP BY ALL
"""

Found = dict[tuple[str, str], tuple[float, float, float]]  # by link: messages, mean, deviation


def write_telemetry(directory: Path, rows: int) -> None:
    """Write transfers on 200 links, each with a speed of its own, as a broker would."""
    folder = directory / "received"
    folder.mkdir(parents=True)
    chance = np.random.default_rng(1)
    names = pa.array([f"broker-{number:03}" for number in range(LINKS)])
    schema = table_schema("received")
    for part in range(rows // ROWS_PER_PART):
        link = chance.integers(0, LINKS, ROWS_PER_PART)
        mean = 0.01 + 0.0004 * link
        size_kb = chance.uniform(1.0, 100.0, ROWS_PER_PART)
        speed = np.maximum(mean * (1.0 + 0.2 * chance.standard_normal(ROWS_PER_PART)), 1e-4)
        columns: dict[str, Any] = {
            "time_s": 10.0 * part + np.sort(chance.uniform(0.0, 10.0, ROWS_PER_PART)),
            "broker": names.take(pa.array((link + 1) % LINKS)),
            "share": np.ones(ROWS_PER_PART),
            "neighbour": names.take(pa.array(link)),
            "origin": names.take(pa.array(link // 4)),
            "number": np.arange(ROWS_PER_PART) + part * ROWS_PER_PART,
            "publisher": names.take(pa.array(link // 4)),
            "age_s": speed * size_kb + chance.exponential(0.1, ROWS_PER_PART),
            "transfer_s": speed * size_kb,
            "size_kb": size_kb,
        }
        table = pa.table({name: columns[name] for name in schema.names}, schema=schema)
        pq.write_table(table, folder / f"part-{part:05}.parquet")


def resident_mb(process: int) -> float:
    """Return what a process and all that it started hold in memory, in megabytes."""
    total, waiting = 0.0, [process]
    while waiting:
        each = waiting.pop()
        try:
            lines = Path(f"/proc/{each}/status").read_text().splitlines()
            threads = list(Path(f"/proc/{each}/task").iterdir())
            children = [child for thread in threads for child in (thread / "children").read_text().split()]
        except OSError:
            continue  # it has ended meanwhile
        total += sum(float(line.split()[1]) / 1000.0 for line in lines if line.startswith(MEMORY_LINE))
        waiting += map(int, children)
    return total


class Watch(threading.Thread):
    """Looks now and then how much memory a process holds."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0.0
        self._process = process
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(WATCH_EVERY_S):
            self.peak_mb = max(self.peak_mb, resident_mb(self._process))

    def end(self) -> None:
        self._ended.set()
        self.join()


def duckdb_pass(directory: Path) -> Callable[[], Found]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    query = DUCKDB_QUERY.format(width=0.3 / CELLS, cells=CELLS, files=directory / "received" / "*.parquet")

    def run() -> Found:
        sums: dict[tuple[str, str], list[float]] = {}
        for neighbour, broker, _, count, total, squares in connection.execute(query).fetchall():
            held = sums.setdefault((neighbour, broker), [0.0, 0.0, 0.0])
            for place, value in enumerate((count, total, squares)):
                held[place] += value
        return {
            link: (count, total / count, math.sqrt(squares / count - (total / count) ** 2))
            for link, (count, total, squares) in sums.items()
        }

    return run


def spark_pass(directory: Path) -> Callable[[], Found]:
    from betimes.pipeline.spark.session import open_session

    spark = open_session("bench_pipeline", master="local[2]")
    files = sorted(str(path) for path in (directory / "received").glob("*.parquet"))

    def run() -> Found:
        found = spreads(spark, files, SPEED)
        return {
            (neighbour, broker): (each.count, each.mean, math.sqrt(each.variance))
            for (neighbour, broker), each in found.items()
        }

    return run


def serve(make: Callable[[Path], Callable[[], Found]], directory: Path, pipe: Any) -> None:
    """Run a pass as often as it is asked for; tell how long it took, and what it found."""
    run = make(directory)
    while pipe.recv() == RUN:
        began_s = time.perf_counter()
        found = run()
        pipe.send((time.perf_counter() - began_s, found))


class Contender:
    """One side, in a process of its own, with its memory watched."""

    def __init__(self, make: Callable[[Path], Callable[[], Found]], directory: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(make, directory, theirs))
        self._process.start()
        assert self._process.pid is not None
        self.watch = Watch(self._process.pid)
        self.watch.start()
        self.took_s: list[float] = []
        self.found: Found = {}

    def run(self, *, counts: bool) -> None:
        self._pipe.send(RUN)
        took_s, self.found = self._pipe.recv()
        if counts:
            self.took_s.append(took_s)

    def end(self) -> None:
        self._pipe.send(END)
        self._process.join(30)
        self.watch.end()

    @property
    def median_s(self) -> float:
        return statistics.median(self.took_s)


def check_same(ours: Found, theirs: Found) -> None:
    """Stop if the two did not find the same."""
    assert ours.keys() == theirs.keys(), "not the same links"
    for link, numbers in ours.items():
        for one, other in zip(numbers, theirs[link], strict=True):
            assert math.isclose(one, other, rel_tol=1e-4), (link, numbers, theirs[link])


def measure(directory: Path, repeats: int) -> dict[str, Any]:
    sides = {"Betimes on Spark": spark_pass, "DuckDB": duckdb_pass}
    contenders = {name: Contender(make, directory) for name, make in sides.items()}
    try:
        for repeat in range(repeats + 1):
            for contender in contenders.values():
                contender.run(counts=repeat > 0)
    finally:
        for contender in contenders.values():
            contender.end()
    ours, theirs = contenders.values()
    check_same(ours.found, theirs.found)
    return {
        "seconds": {name: each.took_s for name, each in contenders.items()},
        "median_s": {name: each.median_s for name, each in contenders.items()},
        "peak_mb": {name: each.watch.peak_mb for name, each in contenders.items()},
        "links": len(ours.found),
        "ratio": ours.median_s / theirs.median_s,
    }


def show(rows: int, found: dict[str, Any]) -> None:
    table = Table(title=f"{rows:,} transfers to the distributions of {found['links']} links")
    for column in ("", "median s", "from", "to", "peak MB"):
        table.add_column(column, justify="left" if not column else "right")
    for name, times_s in found["seconds"].items():
        peak_mb = found["peak_mb"][name]
        table.add_row(
            name,
            f"{found['median_s'][name]:.2f}",
            f"{min(times_s):.2f}",
            f"{max(times_s):.2f}",
            f"{peak_mb:,.0f}",
        )
    console = Console()
    console.print(table)
    kept = "kept" if found["ratio"] <= RATIO_MAX else "not kept"
    console.print(f"{found['ratio']:.2f} times DuckDB's time; the goal is at most {RATIO_MAX:g}: {kept}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = ROWS // 10 if arguments.quick else ROWS
    with tempfile.TemporaryDirectory(prefix="betimes-bench-") as name:
        write_telemetry(Path(name), rows)
        found = measure(Path(name), max(arguments.repeats, 1))
    if arguments.json:
        print(json.dumps({"rows": rows} | found, indent=2))
    else:
        show(rows, found)


if __name__ == "__main__":
    main()
