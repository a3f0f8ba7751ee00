"""The offset of each broker's clock, from the events that travelled between brokers.

No two machines' clocks are compared directly. An event carries its age, so a broker that sees it knows, on
its own clock, when it was published: the time at which it saw the event, less its age. The median difference
to the time on the publishing broker's clock is the offset between both clocks. Brokers between which no event
ever travelled, not even over others, are assumed to agree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from betimes.pipeline.spark.lazy import DataFrame, F

EVENTS_COMPARED = 200_000  # approximately: a median needs no more
DIGITS = 3  # milliseconds: ages are no more exact


def clock_differences(events: DataFrame, sightings: DataFrame, rows: int) -> Mapping[tuple[str, str], float]:
    """Return by how much the second broker's clock is ahead of the first's, for pairs with events.

    `sightings` has the broker where an event was seen, when, and its age then.
    """
    one_in = max(rows // EVENTS_COMPARED, 1)
    chosen = F.pmod(F.xxhash64("origin", "number"), F.lit(one_in)) == 0
    published = events.filter(chosen).select(
        "origin", "number", F.col("broker").alias("from_broker"), F.col("time_s").alias("published_s")
    )
    seen = sightings.filter(chosen).select(
        "origin",
        "number",
        F.col("broker").alias("at_broker"),
        (F.col("time_s") - F.col("age_s")).alias("born_s"),
    )
    pairs = published.join(seen, on=["origin", "number"], how="inner").filter("from_broker != at_broker")
    ahead_s = F.round(F.median(F.col("born_s") - F.col("published_s")), DIGITS)
    found = pairs.groupBy("from_broker", "at_broker").agg(ahead_s.alias("ahead_s")).collect()
    return {(row.from_broker, row.at_broker): row.ahead_s for row in found}


def clocks_ahead_s(differences: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return by how much each broker's clock is ahead of the first broker that it exchanged events with.

    >>> clocks_ahead_s({("a", "b"): 5.0, ("b", "c"): -2.0})
    {'a': 0.0, 'b': 5.0, 'c': 3.0}
    """
    near: dict[str, dict[str, float]] = {}
    for (one, other), ahead_s in sorted(differences.items()):
        near.setdefault(one, {}).setdefault(other, ahead_s)
        near.setdefault(other, {}).setdefault(one, -ahead_s)
    found: dict[str, float] = {}
    for first in sorted(near):
        if first in found:
            continue
        found[first] = 0.0
        waiting = deque([first])
        while waiting:
            broker = waiting.popleft()
            for other in sorted(near[broker].keys() - found.keys()):
                found[other] = found[broker] + near[broker][other]
                waiting.append(other)
    return found
