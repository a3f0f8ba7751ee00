"""How fast does the index find who wants an event, side by side with what else could?

Four workloads (A to D), five ways to match: ours over batches (pairs, and counts), ours one event per call,
a compiled loop over all subscriptions with early exit, DuckDB and Polars as range joins. Times are
microseconds of processor time per event, on one thread, the best of several runs (of one for the joins).
Slow engines are given fewer events, as the table says; all must find the same number of pairs on those that
all were given. A join sorts first, however few the events: with more, B and D would take less per event.
Goals were set on another machine: they are stretched by what the compiled loop takes here over there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when polars is imported

import duckdb
import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from betimes.kernels.compile import kernel
from betimes.matching.index.event_batch import EventBatch, TextColumn
from betimes.matching.index.index import MatchingIndex
from betimes.model.filters import Box, Filter, Interval

OPEN = 1e300  # stands for an end that is not there, where an engine has no NaN
GOALS_US = {
    "batch, pairs": {"A": 6.1, "B": 9.6, "C": 1.0, "D": 70.0},
    "one event per call": {"A": 10.0, "B": 40.0, "C": 5.0},
}
LOOP_US_AT_GOALS = {"A": 773.0, "B": 6660.0, "C": 1033.0, "D": 11975.0}
EVENTS_CHECKED = 8
SAMPLES = {
    "compiled loop": {"A": 1024, "B": 128, "C": 1024, "D": 64},
    "DuckDB": {"A": 4096, "B": 1024, "C": 32_768, "D": 256},
    "Polars": {"A": 4096, "B": 128, "C": 32_768, "D": 64},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Subscriptions as closed intervals (NaN: not constrained), perhaps with a topic; events as columns."""

    name: str
    text: str
    lows: NDArray[np.float64]  # per attribute, per subscription
    highs: NDArray[np.float64]
    topics: NDArray[np.int32] | None
    values: NDArray[np.float64]  # per attribute, per event
    event_topics: NDArray[np.int32] | None

    @property
    def subscriptions(self) -> int:
        return int(self.lows.shape[1])

    def names(self) -> list[str]:
        return [f"a{number}" for number in range(len(self.lows))]

    def batch(self, events: int) -> EventBatch:
        texts = {}
        if self.event_topics is not None:
            texts = {"topic": TextColumn(texts=topic_names(), codes=self.event_topics[:events])}
        columns = {name: column[:events] for name, column in zip(self.names(), self.values, strict=True)}
        return EventBatch(size=events, numbers=columns, texts=texts)

    def mappings(self, events: int) -> list[dict[str, float | str | bool | None]]:
        plain: list[dict[str, float | str | bool | None]] = [
            {name: float(value) for name, value in zip(self.names(), self.values[:, event], strict=True)}
            for event in range(events)
        ]
        if self.event_topics is not None:
            names = topic_names()
            for event, attributes in enumerate(plain):
                attributes["topic"] = names[self.event_topics[event]]
        return plain

    def index(self) -> MatchingIndex:
        texts = {}
        if self.topics is not None:
            texts = {"topic": TextColumn(texts=topic_names(), codes=self.topics)}
        index = MatchingIndex()
        index.add_columns(
            np.arange(self.subscriptions),
            lows=dict(zip(self.names(), self.lows, strict=True)),
            highs=dict(zip(self.names(), self.highs, strict=True)),
            texts=texts,
        )
        return index


def topic_names() -> tuple[str, ...]:
    return tuple(f"topic-{number}" for number in range(1000))


def some_of(chance: np.random.Generator, attributes: int, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each subscription (column) which attributes it constrains: as many as its count says."""
    order = chance.random((attributes, len(counts))).argsort(axis=0)
    chosen = np.zeros((attributes, len(counts)), np.bool_)
    np.put_along_axis(chosen, order, np.arange(attributes)[:, None] < counts, axis=0)
    return chosen


def workload(name: str, scale: float, events: int) -> Workload:
    """Return a workload with `scale` times the subscriptions it is defined with."""
    chance = np.random.default_rng([4, ord(name)])
    attributes, full, width_max, text = {
        "A": (4, 100_000, 0.6, "4 attributes, all constrained, widths U(0, 0.6)"),
        "B": (10, 1_000_000, 0.114, "3-4 of 10 attributes constrained, widths U(0, 0.114)"),
        "C": (2, 200_000, 0.4, "one of 1,000 Zipf topics, 2 ranges, widths U(0, 0.4)"),
        "D": (20, 1_000_000, 0.4, "10 of 20 attributes constrained, width 0.4"),
    }[name]
    count = round(full * scale)
    widths = chance.random((attributes, count)) * width_max
    if name == "D":
        widths[:] = width_max
    lows = chance.random((attributes, count)) * (1 - widths)
    if name in "BD":
        constrained = chance.integers(3, 5, count) if name == "B" else np.full(count, 10)
        lows[~some_of(chance, attributes, constrained)] = np.nan
    shares = 1 / np.arange(1, 1001)
    shares /= shares.sum()
    topics = chance.choice(1000, count, p=shares).astype(np.int32) if name == "C" else None
    event_topics = chance.choice(1000, events, p=shares).astype(np.int32) if name == "C" else None
    values = chance.random((attributes, events))
    highs = lows + widths
    return Workload(
        name=name,
        text=f"{count:,} subscriptions: {text}",
        lows=lows,
        highs=highs,
        topics=topics,
        values=values,
        event_topics=event_topics,
    )


def best_us(run: Callable[[], object], events: int, repeats: int) -> float:
    """Return the least processor time per event, in microseconds, of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) / events * 1e6


@kernel
def brute_force(lows, highs, lanes, starts, values, found):
    """Write the (event, subscription) pairs, each subscription checked until a constraint fails."""
    pairs = 0
    for event in range(values.shape[0]):
        for row in range(starts.shape[0] - 1):
            holds = True
            for place in range(starts[row], starts[row + 1]):
                value = values[event, lanes[place]]
                if value < lows[place] or value > highs[place]:
                    holds = False
                    break
            if holds:
                found[pairs % found.shape[0]] = row
                pairs += 1
    return pairs


def brute_runner(work: Workload) -> Callable[[int], int]:
    lows, highs, values = work.lows.T, work.highs.T, work.values.T
    if work.topics is not None and work.event_topics is not None:
        lows = np.column_stack((work.topics.astype(float), lows))  # the topic first: it fails most often
        highs = np.column_stack((work.topics.astype(float), highs))
        values = np.column_stack((work.event_topics.astype(float), values))
    there = ~np.isnan(lows)
    starts = np.concatenate(([0], np.cumsum(there.sum(axis=1))))
    lanes = np.nonzero(there)[1]
    flat_lows, flat_highs, rows = lows[there], highs[there], np.ascontiguousarray(values)
    found = np.empty(1 << 16, np.int32)

    def run(events: int) -> int:
        return int(brute_force(flat_lows, flat_highs, lanes, starts, rows[:events], found))

    run(1)
    return run


def frames(work: Workload, events: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return subscriptions and events as tables; an open end is a very large number."""
    lows, highs = np.nan_to_num(work.lows, nan=-OPEN), np.where(np.isnan(work.lows), OPEN, work.highs)
    subscriptions: dict[str, NDArray[np.generic]] = {"key": np.arange(work.subscriptions)}
    published: dict[str, NDArray[np.generic]] = {"event": np.arange(events)}
    for number in range(len(lows)):
        subscriptions |= {f"low{number}": lows[number], f"high{number}": highs[number]}
        published[f"a{number}"] = work.values[number, :events]
    if work.topics is not None and work.event_topics is not None:
        subscriptions["wanted"] = work.topics
        published["topic"] = work.event_topics[:events]
    return pl.DataFrame(subscriptions), pl.DataFrame(published)


def duckdb_runner(work: Workload, events_max: int) -> Callable[[int], int]:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, frame in zip(("subscriptions", "published"), frames(work, events_max), strict=True):
        connection.register("frame", frame)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    conditions = [f"a{number} BETWEEN low{number} AND high{number}" for number in range(len(work.lows))]
    if work.topics is not None:
        conditions.append("topic = wanted")
    joined = " AND ".join(conditions)

    def run(events: int) -> int:
        some = f"(SELECT * FROM published WHERE event < {events})"
        query = f"SELECT event, key FROM {some} JOIN subscriptions ON {joined}"
        return len(connection.execute(query).fetchnumpy()["key"])

    return run


def polars_runner(work: Workload, events_max: int) -> Callable[[int], int]:
    subscriptions, published = frames(work, events_max)

    def run(events: int) -> int:
        conditions = []
        for number in range(len(work.lows)):
            conditions += [
                pl.col(f"a{number}") >= pl.col(f"low{number}"),
                pl.col(f"a{number}") <= pl.col(f"high{number}"),
            ]
        some = published.head(events).lazy()
        if work.topics is not None:  # an equality join first, as a person would write it
            joined = some.join(subscriptions.lazy(), left_on="topic", right_on="wanted").filter(*conditions)
        else:
            joined = some.join_where(subscriptions.lazy(), *conditions)
        return joined.select("event", "key").collect().height

    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One engine on one workload."""

    workload: str
    engine: str
    us_per_event: float
    events: int


def measure(work: Workload, *, quick: bool, console: Console) -> tuple[list[Measured], float]:
    """Return what each engine took, and the matches per event."""
    start = time.perf_counter()
    index = work.index()
    build_s = time.perf_counter() - start
    events = work.values.shape[1]
    batch = work.batch(events)
    singles = work.mappings(min(events, 500 if quick else 2000))
    matches = index.match_many(batch)  # also warms up
    repeats = 2 if quick else 4
    rows = [
        ("batch, pairs", best_us(lambda: index.match_many(batch), events, repeats), events),
        ("batch, counts", best_us(lambda: index.count_many(batch), events, repeats), events),
        (
            "one event per call",
            best_us(lambda: [index.match(each) for each in singles], len(singles), repeats),
            len(singles),
        ),
    ]
    console.print(f"{work.name}: built in {build_s:.1f} s; {matches.counts().mean():.0f} matches per event")
    expected = int(matches.counts()[:EVENTS_CHECKED].sum())
    for name, make in (
        ("compiled loop", lambda: brute_runner(work)),
        ("DuckDB", lambda: duckdb_runner(work, events)),
        ("Polars", lambda: polars_runner(work, events)),
    ):
        run = make()
        pairs = run(EVENTS_CHECKED)
        if pairs != expected:
            raise SystemExit(f"{name} finds {pairs} pairs on workload {work.name}, ours {expected}")
        sample = min(events, SAMPLES[name][work.name])
        rows.append(
            (name, best_us(partial(run, sample), sample, 5 if name == "compiled loop" else 1), sample)
        )
    if sum(len(index.match(each)) for each in singles[:EVENTS_CHECKED]) != expected:
        raise SystemExit(f"one event per call finds other pairs on workload {work.name}")
    return [
        Measured(workload=work.name, engine=engine, us_per_event=us, events=count)
        for engine, us, count in rows
    ], float(matches.counts().mean())


def updates(*, quick: bool) -> dict[str, float]:
    """Return how long adding and removing one subscription among 100,000 takes, in microseconds."""
    chance = np.random.default_rng(5)
    index = workload("A", 1.0, 1).index()
    rounds = 2000 if quick else 20_000
    boxes = [
        Filter((Box(tuple((f"a{place}", Interval(low, low + 0.3)) for place, low in enumerate(lows))),))
        for lows in chance.random((rounds, 4)).tolist()
    ]
    added_us, removed_us = [], []
    victims = chance.permutation(100_000)[:rounds].tolist()
    for number, (wanted, victim) in enumerate(zip(boxes, victims, strict=True)):
        start = time.perf_counter()
        index.add(200_000 + number, wanted)
        middle = time.perf_counter()
        index.remove(victim)
        removed_us.append((time.perf_counter() - middle) * 1e6)
        added_us.append((middle - start) * 1e6)
    return {
        "rounds": rounds,
        "add_us_mean": float(np.mean(added_us)),
        "add_us_99": float(np.quantile(added_us, 0.99)),
        "add_us_max": max(added_us),
        "remove_us_mean": float(np.mean(removed_us)),
        "remove_us_99": float(np.quantile(removed_us, 0.99)),
        "remove_us_max": max(removed_us),
    }


def small_set_us() -> float:
    """Return how long one event takes among 50 subscriptions, in microseconds."""
    work = workload("A", 0.0005, 2000)
    index, singles = work.index(), work.mappings(2000)
    return best_us(lambda: [index.match(each) for each in singles], len(singles), 10)


def report(console: Console, works: list[Workload], measured: list[Measured], *, with_goals: bool) -> None:
    """Print microseconds per event, how many times ours over batches that is, and the stretched goals."""
    table = Table(title="Matching: processor time per event in µs (times ours over batches, pairs)")
    table.add_column("engine")
    for work in works:
        table.add_column(work.name, justify="right")
    found = {(each.engine, each.workload): each for each in measured}
    for engine in dict.fromkeys(each.engine for each in measured):
        cells = []
        for work in works:
            each, ours = found[engine, work.name], found["batch, pairs", work.name]
            ratio = each.us_per_event / ours.us_per_event
            goal = GOALS_US.get(engine, {}).get(work.name)
            stretch = found["compiled loop", work.name].us_per_event / LOOP_US_AT_GOALS[work.name]
            asked = (
                f"\n[dim]goal {goal * stretch:.1f} ({goal:g} x {stretch:.2f})[/dim]"
                if with_goals and goal
                else ""
            )
            times = "" if each is ours else f" ({ratio:,.1f}x)"
            cells.append(f"{each.us_per_event:,.2f}{times}{asked}\n[dim]{each.events:,} events[/dim]")
        table.add_row(engine, *cells)
    console.print(table)


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the subscriptions, fewer runs")
    parser.add_argument("--workloads", default="A,B,C,D", help="which of A,B,C,D (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    names = options.workloads.split(",")
    if set(names) - set("ABCD"):
        parser.error(f"workloads are A, B, C and D, not {options.workloads}")
    console = Console(stderr=options.json)
    works, measured, matches = [], [], {}
    for name in names:
        work = workload(name, 0.1 if options.quick else 1.0, 8192 if options.quick else 32_768)
        rows, matches[name] = measure(work, quick=options.quick, console=console)
        works.append(work)
        measured += rows
    update, small = updates(quick=options.quick), small_set_us()
    if options.json:
        rows_plain = [{name: getattr(each, name) for name in each.__slots__} for each in measured]
        json.dump(
            {"measured": rows_plain, "matches_per_event": matches, "updates": update, "small_set_us": small},
            sys.stdout,
            indent=2,
        )
        return
    for work in works:
        console.print(f"{work.name}: {work.text}")
    report(console, works, measured, with_goals=not options.quick)
    console.print(f"Among 50 subscriptions one event per call takes {small:.1f} µs.")
    console.print(
        f"Among 100,000, over {update['rounds']:,} rounds: adding one takes "
        f"{update['add_us_mean']:.0f} µs on average "
        f"(99 % within {update['add_us_99']:.0f}, worst {update['add_us_max']:,.0f}), "
        f"removing one {update['remove_us_mean']:.0f} µs (99 % within {update['remove_us_99']:.0f}, "
        f"worst {update['remove_us_max']:,.0f})."
    )


if __name__ == "__main__":
    main()
