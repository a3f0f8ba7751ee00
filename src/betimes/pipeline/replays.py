"""If these subscriptions had existed, who would have received what, when, and in time?

The events that brokers wrote down are matched with subscriptions that may never have been. How long each
event would have been under way follows from what was measured: matching at the broker where it entered, and
on the way of least mean transmission time each link's waits and speed (000, eqs. 4 and 5). The network is
taken as it was: what the new subscriptions would have added to its load is not in it (`betimes predict` and
`betimes admit` reckon with that).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from betimes.language.tables import PRICE_MAX
from betimes.model.errors import BetimesError
from betimes.pipeline.event_columns import is_number
from betimes.pipeline.match_files import MATCHES, SET_ASIDE, SUMMARY, check_out, staged_answer
from betimes.pipeline.match_forms import Form
from betimes.pipeline.match_plans import MatchPlan, MatchSettings
from betimes.pipeline.matching import match
from betimes.pipeline.replay_ways import Ways, learned_ways, on_time_chance
from betimes.pipeline.row_sources import frame_rows, open_rows, parquet_files, parquet_rows, read_rows
from betimes.pipeline.subscription_rows import SUBSCRIBER, SubscriptionShape
from betimes.pipeline.sweep_tables import write_table
from betimes.pipeline.table_files import current_tables, read_arrow
from betimes.pipeline.tables import EVENTS, LINKS
from betimes.pipeline.watched_jobs import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CARRIED = ("origin", "number", "broker", "time_s", "size_kb", "deadline_s", "share")
HOME, BOUND, PRICE = "home", "delay_s_max", "price"
TERMS = f"{BOUND} is in seconds, 0 or more; {PRICE} from 0 to {PRICE_MAX:g}"
SUBSCRIBERS = "subscribers.parquet"
DDL = (
    "origin string, number bigint, subscriber string, home string, published_s double, arrives_s double, "
    "delay_s_mean double, delay_s_sd double, delay_s_allowed double, on_time_chance double, price double, "
    "weight double"
)
SCHEMA = pa.schema(
    [
        (name, {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}[kind])
        for name, kind in (column.strip().split() for column in DDL.split(","))
    ]
)
Numbers = NDArray[np.float64]
Batches = Iterator[pa.RecordBatch]
Progress = Callable[[int, int], None]


class ReplayError(BetimesError):
    """A replay that cannot be: says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Who the subscriptions belong to and what each asks for, by their numbers."""

    people: tuple[tuple[str, str], ...]  # subscriber and home
    person: NDArray[np.int64]
    bound_s: Numbers
    price: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTask:
    """Works out, inside a task, what becomes of events and those who want them."""

    ways: Ways
    terms: Terms

    def task(self) -> Callable[[Batches], Batches]:
        """Return the function for Spark."""

        def task(batches: Batches) -> Batches:
            for batch in batches:
                yield self.outcome(batch)

        return task

    def outcome(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a row for each event and person; somebody who wants it twice has the best terms."""
        lists = batch.column("subscribers")
        event = np.repeat(np.arange(batch.num_rows), lists.value_lengths().fill_null(0).to_numpy())
        key = lists.flatten().to_numpy().astype(np.int64)
        terms, count = self.terms, max(len(self.terms.people), 1)
        pairs, place = np.unique(event * count + terms.person[key], return_inverse=True)
        bound_s, price = np.zeros(len(pairs)), np.zeros(len(pairs))
        np.maximum.at(bound_s, place, terms.bound_s[key])
        np.maximum.at(price, place, terms.price[key])
        event, person = pairs // count, pairs % count
        homes = {name: number for number, name in enumerate(self.ways.homes)}
        brokers = {name: number for number, name in enumerate(self.ways.brokers)}
        way = (
            np.array([brokers[name] for name in batch.column("broker").to_pylist()], np.int64)[event],
            np.array([homes[home] for _, home in terms.people], np.int64)[person],
        )
        size_kb, born_s, deadline_s, share = (
            np.asarray(batch.column(name), np.float64)[event]
            for name in ("size_kb", "time_s", "deadline_s", "share")
        )
        mean_s = self.ways.fixed_s_mean[way] + size_kb * self.ways.s_per_kb_mean[way]
        sd_s = np.sqrt(self.ways.fixed_s_variance[way] + size_kb**2 * self.ways.s_per_kb_variance[way])
        allowed_s = np.minimum(bound_s, deadline_s)
        chance = on_time_chance(allowed_s, mean_s, sd_s) * self.ways.arriving_share[way]
        is_reached = np.isfinite(mean_s)
        names = [terms.people[number] for number in person.tolist()]
        return pa.RecordBatch.from_arrays(
            [
                batch.column("origin").take(pa.array(event)),
                batch.column("number").take(pa.array(event)),
                pa.array([name for name, _ in names], pa.string()),
                pa.array([home for _, home in names], pa.string()),
                pa.array(born_s),
                pa.array(born_s + mean_s, mask=~is_reached),
                pa.array(mean_s, mask=~is_reached),
                pa.array(sd_s, mask=~is_reached),
                pa.array(allowed_s),
                pa.array(chance),
                pa.array(price),
                pa.array(np.rint(1.0 / share)),
            ],
            schema=SCHEMA,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """What is to be replayed, and where the answer goes."""

    tables: Path
    subscriptions: str
    out: Path
    settings: MatchSettings = field(default_factory=MatchSettings)
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFacts:
    """What came out, in all and for each subscriber."""

    plan: MatchPlan
    subscribers: pa.Table
    set_aside: int
    took_s: float

    def total(self, name: str) -> float:
        """Return the sum of a column over all subscribers."""
        return math.fsum(value or 0.0 for value in self.subscribers[name].to_pylist())

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        wanted = self.total("wanted")
        return {
            "events": self.plan.events,
            "subscriptions": self.plan.subscriptions,
            "wanted": wanted,
            "on_time": self.total("on_time"),
            "on_time_share": self.total("on_time") / wanted if wanted else None,
            "earning": self.total("earning"),
            "offered": self.total("offered"),
            "unreachable": self.total("unreachable"),
            "set_aside": self.set_aside,
            "took_s": round(self.took_s, 3),
            "plan": self.plan.facts(),
        }


def replay(spark: SparkSession, request: ReplayRequest, progress: Progress | None = None) -> ReplayFacts:
    """Replay stored events to subscriptions, write who would have received what, and return the sums."""
    began_s = time.monotonic()
    check_out(request.out, overwrite=request.overwrite)
    folder = current_tables(request.tables)
    events = parquet_rows(spark, parquet_files(folder / EVENTS.name), str(request.tables))
    wished = open_rows(spark, request.subscriptions)
    rows = checked_rows(read_rows(wished, list(wished.schema.names)), request.subscriptions)
    brokers = sorted(read_rows(events, ["broker"])["broker"].unique().to_pylist())
    terms = terms_of(rows, request.subscriptions)
    homes = sorted({home for _, home in terms.people})
    check_homes(folder, homes, brokers, request.subscriptions)
    task = ReplayTask(ways=learned_ways(folder, brokers, homes), terms=terms)
    wishes = frame_rows(spark.createDataFrame(_numbered(rows, request.subscriptions)), request.subscriptions)
    found = match(events, wishes, form=Form.LISTS, ids=CARRIED, settings=request.settings)
    outcome = found.frame.mapInArrow(task.task(), DDL)
    tell = progress or (lambda _done, _total: None)
    with staged_answer(request.out) as staging:
        watched(
            spark,
            lambda: outcome.write.parquet(str(staging)),
            events.tasks,
            lambda done: tell(done, events.tasks),
            "the replay",
        )
    tell(events.tasks, events.tasks)
    summary = summed_up(spark, str(request.out.absolute() / MATCHES))
    quarantine = _named(found.quarantine, rows)
    write_table(summary, request.out / SUBSCRIBERS)
    write_table(quarantine, request.out / SET_ASIDE)
    facts = ReplayFacts(
        plan=found.plan,
        subscribers=summary,
        set_aside=quarantine.num_rows,
        took_s=time.monotonic() - began_s,
    )
    (request.out / SUMMARY).write_text(json.dumps(facts.as_dict(), indent=2) + "\n")
    return facts


def check_homes(folder: Path, homes: Sequence[str], brokers: Sequence[str], source: str) -> None:
    """Raise a ReplayError where a subscriber is at a broker that the tables do not know."""
    links = read_arrow(LINKS, folder, ["source", "target"])
    known = set(brokers).union(links["source"].to_pylist(), links["target"].to_pylist())
    unknown = [home for home in homes if home not in known]
    if unknown:
        hint = f"the tables know {', '.join(sorted(known)[:20])}"
        raise ReplayError(f"{source}: home {unknown[0]!r} is no broker of these tables\nhint: {hint}")


def _numbered(rows: pa.Table, source: str) -> pa.Table:
    """Return the subscriptions under their numbers: somebody with several must be told apart by terms."""
    place = rows.schema.get_field_index(SUBSCRIBER)
    numbered = rows.set_column(place, SUBSCRIBER, pa.array(range(rows.num_rows), pa.int64()))
    return numbered.select(SubscriptionShape.of(numbered.schema, source).columns)


def _named(quarantine: pa.Table, rows: pa.Table) -> pa.Table:
    """Return what was set aside under the names of the subscribers."""
    numbers = [int(number) for number in quarantine["name"].to_pylist()]
    names = [str(rows[SUBSCRIBER][number].as_py()) for number in numbers]
    named = quarantine.set_column(2, "name", pa.array(names, pa.string()))
    return named.set_column(1, "row", pa.array([number + 1 for number in numbers], pa.int64()))


def checked_rows(rows: pa.Table, source: str) -> pa.Table:
    """Return the subscriptions, if they say where their subscribers are."""
    for name in (SUBSCRIBER, HOME):
        if name not in rows.schema.names:
            hint = f"there are {', '.join(rows.schema.names[:20])}"
            raise ReplayError(f"{source}: no column {name!r}: to whom, and at which broker?\nhint: {hint}")
        missing = rows[name].null_count
        if missing:
            raise ReplayError(f"{source}: {missing:,} rows say nothing in column {name!r}")
    return rows


def terms_of(rows: pa.Table, source: str = "subscriptions") -> Terms:
    """Return what the subscriptions ask for; without a bound any age will do, without a price it is 1."""
    count = rows.num_rows
    pairs = list(zip(map(str, rows[SUBSCRIBER].to_pylist()), rows[HOME].to_pylist(), strict=True))
    people = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}

    def numbers(name: str, otherwise: float, most: float) -> Numbers:
        if name not in rows.schema.names:
            return np.full(count, otherwise)
        column = rows[name]
        if not is_number(column.type) and not pa.types.is_null(column.type):
            raise ReplayError(
                f"{source}: column {name!r} must hold numbers, not {column.type}\nhint: {TERMS}"
            )
        found = np.asarray(column.cast(pa.float64()).fill_null(otherwise), np.float64)
        wrong = np.flatnonzero(~((found >= 0.0) & (found <= most)))  # NaN is neither
        if len(wrong):
            problem = f"{source}: row {wrong[0] + 1}: {name} is {found[wrong[0]]:g}"
            raise ReplayError(f"{problem}\nhint: {TERMS}")
        return found

    return Terms(
        people=tuple(people),
        person=np.array([people[pair] for pair in pairs], np.int64),
        bound_s=numbers(BOUND, math.inf, math.inf),
        price=numbers(PRICE, 1.0, PRICE_MAX),
    )


def summed_up(spark: SparkSession, place: str) -> pa.Table:
    """Return per subscriber what it would have wanted, and what of it is expected in time."""
    import pyspark.sql.functions as F  # noqa: N812 -- as everybody writes it

    weight, chance, price = F.col("weight"), F.col("on_time_chance"), F.col("price")
    reached = F.col("delay_s_mean").isNotNull()
    frame = (
        spark.read.parquet(place)
        .groupBy("subscriber", "home")
        .agg(
            F.sum(weight).alias("wanted"),
            F.sum(weight * chance).alias("on_time"),
            (F.sum(weight * chance) / F.sum(weight)).alias("on_time_share"),
            (F.sum(F.when(reached, weight * F.col("delay_s_mean"))) / F.sum(F.when(reached, weight))).alias(
                "delay_s_mean"
            ),
            F.sum(weight * price).alias("offered"),
            F.sum(weight * chance * price).alias("earning"),
            F.sum(F.when(~reached, weight).otherwise(0.0)).alias("unreachable"),
        )
    )
    return frame.toArrow().sort_by([("subscriber", "ascending"), ("home", "ascending")])
