"""Recorded events replayed to hypothetical subscriptions: what each would have received, when, and in time.

The job matches recorded events with subscriptions that may never have existed; `delays.py` has the delay of
each event. The network is taken as it was: the load that the new subscriptions would have added is not
included (`betimes predict` and `betimes admit` include it).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from betimes.pipeline.match.api import match
from betimes.pipeline.match.files import MATCHES, SET_ASIDE, SUMMARY, check_out, staged_answer
from betimes.pipeline.match.forms import Form
from betimes.pipeline.match.plan import MatchPlan, MatchSettings
from betimes.pipeline.replay.delays import ReplayRoutes, learned_routes, on_time_chance
from betimes.pipeline.replay.terms import ReplaySubscriptions, Terms, known_brokers, subscriptions_in
from betimes.pipeline.rows import sources
from betimes.pipeline.rows.subscriptions import SUBSCRIBER, SubscriptionShape
from betimes.pipeline.spark.lazy import F, SparkSession
from betimes.pipeline.spark.watched_jobs import Progress, watched
from betimes.pipeline.tables.files import arrow_schema, current_tables
from betimes.pipeline.tables.parquet import write_table
from betimes.pipeline.tables.shapes import EVENTS

CARRIED = ("origin", "number", "broker", "time_s", "size_kb", "deadline_s", "share")
SUBSCRIBERS = "subscribers.parquet"
DDL = (
    "origin string, number bigint, subscriber string, home string, published_s double, arrives_s double, "
    "delay_s_mean double, delay_s_sd double, delay_s_allowed double, on_time_chance double, price double, "
    "weight double"
)
SCHEMA = arrow_schema(DDL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTask:
    """Computes, inside a task, the outcome of events for their subscribers."""

    routes: ReplayRoutes
    terms: Terms

    def run(self, batches: sources.Batches) -> sources.Batches:
        """Return the outcomes of one task's events."""
        return map(self.outcome, batches)

    def outcome(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a row for each event and subscriber; of several subscriptions the best terms count."""
        lists = batch.column("subscribers")
        event = np.repeat(np.arange(batch.num_rows), lists.value_lengths().fill_null(0).to_numpy())
        key = lists.flatten().to_numpy().astype(np.int64)
        terms, count = self.terms, max(len(self.terms.people), 1)
        pairs, place = np.unique(event * count + terms.person[key], return_inverse=True)
        bound_s, price = np.zeros(len(pairs)), np.zeros(len(pairs))
        np.maximum.at(bound_s, place, terms.bound_s[key])
        np.maximum.at(price, place, terms.price[key])
        event, person = pairs // count, pairs % count
        homes = {name: number for number, name in enumerate(self.routes.homes)}
        brokers = {name: number for number, name in enumerate(self.routes.brokers)}
        pair = (
            np.array([brokers[name] for name in batch.column("broker").to_pylist()], np.int64)[event],
            np.array([homes[home] for _, home in terms.people], np.int64)[person],
        )
        size_kb, born_s, deadline_s, share = (
            np.asarray(batch.column(name), np.float64)[event]
            for name in ("size_kb", "time_s", "deadline_s", "share")
        )
        mean_s = self.routes.fixed_s_mean[pair] + size_kb * self.routes.s_per_kb_mean[pair]
        sd_s = np.sqrt(self.routes.fixed_s_variance[pair] + size_kb**2 * self.routes.s_per_kb_variance[pair])
        allowed_s = np.minimum(bound_s, deadline_s)
        chance = on_time_chance(allowed_s, mean_s, sd_s) * self.routes.arriving_share[pair]
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
    """What to replay, and where the answer goes."""

    tables: Path
    subscriptions: str
    out: Path
    settings: MatchSettings = field(default_factory=MatchSettings)
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFacts:
    """The sums of a replay, in all and for each subscriber."""

    plan: MatchPlan
    subscribers: pa.Table
    set_aside: int
    took_s: float

    def total(self, name: str) -> float:
        """Return the sum of a column over all subscribers."""
        return math.fsum(value or 0.0 for value in self.subscribers[name].to_pylist())

    def as_dict(self) -> dict[str, Any]:
        """Return the facts for JSON."""
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
    """Replay stored events to subscriptions, write each expected delivery, and return the sums."""
    began_s = time.monotonic()
    check_out(request.out, overwrite=request.overwrite)
    folder = current_tables(request.tables)
    events = sources.parquet_rows(spark, sources.parquet_files(folder / EVENTS.name), str(request.tables))
    source = sources.open_rows(spark, request.subscriptions)
    brokers = sorted(sources.read_rows(events, ["broker"])["broker"].unique().to_pylist())
    subscriptions = subscriptions_in(
        sources.read_rows(source, list(source.schema.names)),
        request.subscriptions,
        known_brokers(folder, brokers),
    )
    homes = sorted({home for _, home in subscriptions.terms.people})
    task = ReplayTask(routes=learned_routes(folder, brokers, homes), terms=subscriptions.terms)
    numbered = spark.createDataFrame(_numbered(subscriptions.rows, request.subscriptions))
    wanted = sources.frame_rows(numbered, request.subscriptions)
    found = match(events, wanted, form=Form.LISTS, ids=CARRIED, settings=request.settings)
    outcome = found.frame.mapInArrow(task.run, DDL)
    with staged_answer(request.out) as staging:
        watched(spark, lambda: outcome.write.parquet(str(staging)), events.tasks, progress, "the replay")
    sums = summed_up(spark, str(request.out.absolute() / MATCHES))
    summary = with_idle(sums, subscriptions.terms, map(int, found.quarantine["name"].to_pylist()))
    quarantine = _named(found.quarantine, subscriptions)
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


def _numbered(rows: pa.Table, source: str) -> pa.Table:
    """Return the subscriptions under their numbers: those of one subscriber differ in their terms."""
    place = rows.schema.get_field_index(SUBSCRIBER)
    numbered = rows.set_column(place, SUBSCRIBER, pa.array(range(rows.num_rows), pa.int64()))
    return numbered.select(SubscriptionShape.of(numbered.schema, source).columns)


def _named(quarantine: pa.Table, subscriptions: ReplaySubscriptions) -> pa.Table:
    """Return the rows set aside under their subscribers' names, with those set aside earlier."""
    numbers = [int(number) for number in quarantine["name"].to_pylist()]
    names = [str(subscriptions.rows[SUBSCRIBER][number].as_py()) for number in numbers]
    named = quarantine.set_column(2, "name", pa.array(names, pa.string()))
    rows = pa.array([subscriptions.row[number] for number in numbers], pa.int64())
    return pa.concat_tables([named.set_column(1, "row", rows), subscriptions.set_aside]).sort_by("row")


def with_idle(summary: pa.Table, terms: Terms, set_aside: Iterable[int]) -> pa.Table:
    """Return the sums of all subscribers, also of those that want none of the events."""
    counted = np.setdiff1d(np.arange(len(terms.person)), np.array(list(set_aside), np.int64))
    people = {terms.people[number] for number in terms.person[counted].tolist()}
    known = set(zip(summary["subscriber"].to_pylist(), summary["home"].to_pylist(), strict=True))
    nothing = dict.fromkeys(("wanted", "on_time", "offered", "earning", "unreachable"), 0.0)
    idle = [{"subscriber": name, "home": home} | nothing for name, home in people - known]
    whole = pa.concat_tables([summary, pa.Table.from_pylist(idle, schema=summary.schema)])
    return whole.sort_by([("subscriber", "ascending"), ("home", "ascending")])


def summed_up(spark: SparkSession, place: str) -> pa.Table:
    """Return for each subscriber how many events it would have wanted, and how many are expected in time."""
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
    return frame.toArrow()
