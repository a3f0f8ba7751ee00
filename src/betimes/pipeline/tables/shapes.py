"""The tables of the pipeline and the meaning of their columns: the only definition.

Every table is a folder of Parquet files with exactly these columns. `docs/reference/tables.md` is generated
from this file (`betimes pipeline tables --markdown`), and a test checks that the page is up to date.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SAMPLE = "array<struct<topic:string,content:string,deadline_s:double,weight:double>>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name with the unit in it, its meaning, and its type as Spark writes it."""

    name: str
    meaning: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """One table: what a row is, where rows come from, and by which column the folder is partitioned."""

    name: str
    row: str
    columns: tuple[Column, ...]
    divided_by: str | None = None  # a column; each of its values has a folder of its own
    source: str = ""  # the kind of telemetry whose rows it holds
    is_filled: bool = True  # by `betimes pipeline run`

    @property
    def ddl(self) -> str:
        """Return the columns as Spark's DDL."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns, in their order."""
        return tuple(column.name for column in self.columns)


# What stands below a table's name: where its rows come from, and how its folder is divided.
_ORIGIN = re.compile(
    r"(?:from (?P<source>[^;:]+))?(?:; )?(?:divided by (?P<divided_by>\w+))?(?P<others>filled by other jobs)?"
)


def _column(line: str) -> Column:
    stated, _, meaning = line.partition(": ")
    name, kind = stated.split()
    return Column(name, meaning, SAMPLE if kind == "sample" else kind)


# Columns of several tables, which name them without type and meaning.
_COMMON_TEXT = """\
time_s double: when, in seconds on the clock of the broker that wrote the row
share double: share of all events that the broker records: the row stands for 1/share events
age_s double: the message's own age, which does not depend on any clock
origin string: the broker that numbered the event: it entered there
number bigint: the event's number there
publisher string: the client that published it
subscriber string: the client that subscribed
home string: the broker where the subscriber is
count_rows bigint: rows that these values are computed from
count double: messages that those rows stand for
pattern string: of topics, as written
delay_s_allowed double: the stricter of both sides' bounds
"""
_COMMON = {column.name: column for column in map(_column, _COMMON_TEXT.splitlines())}


def read_shapes(text: str) -> tuple[TableShape, ...]:
    """Return the tables of a text, one in each block: name and meaning of a row, origin, columns."""
    found = []
    for block in text.strip().replace("\n  ", " ").split("\n\n"):
        head, *lines = block.splitlines()
        name, row = head.split(": ", 1)
        origin = _ORIGIN.fullmatch(lines[0])
        facts = origin.groupdict() if origin else {}
        parts = [
            [_column(line)] if ": " in line else [_COMMON[each] for each in line.split()]
            for line in lines[bool(origin) :]
        ]
        shape = TableShape(
            name=name,
            row=row,
            columns=tuple(column for part in parts for column in part),
            divided_by=facts.get("divided_by"),
            source=facts.get("source") or "",
            is_filled=not facts.get("others"),
        )
        found.append(shape)
    return tuple(found)


BASE_TABLES = read_shapes("""\
events: an event entered at a broker
from published; divided by broker
time_s share origin number publisher
topic string: where it was published to
size_kb double: its size
deadline_s double: the publisher's bound on delay; infinity: none
wanted bigint: how many subscribers the broker found for it
content string: its attributes, as JSON
stored bigint: subscriptions that the broker searched
matching_s double: the seconds that it took
broker string: where it entered

subscriptions: a subscription held, with these terms, from one time to another
from subscribed and unsubscribed
subscriber home pattern
filter string: of content, as written
delay_s_max double: how old a message may be; infinity: any age
price double: what a message in time is worth
reliability double: the on-time share asked for; 0: none
is_shared boolean: whether it is a shared subscription (`$share/…`), whose members take turns
from_s double: when it began, on the home's clock
until_s double: when it ended, on the home's clock; null: it still holds

transfers: a message came off a link
from received; divided by target
time_s share origin number publisher age_s
transfer_s double: how long the link took
size_kb double: the event's size
source string: the broker that sent it
target string: the broker that got it

waits: a broker gave a message to a link, after it waited
from sent; divided by source
time_s share origin number publisher age_s
wait_s double: how long it waited there
size_kb double: the event's size
destinations bigint: the brokers that this copy was for
target string: the broker it was sent to
source string: the broker where it waited

deliveries: a message reached a subscriber
from delivered; divided by home
time_s share origin number publisher age_s subscriber delay_s_allowed
price double: what it is worth in time
on_time boolean: whether `age_s` is within `delay_s_allowed`
out_of_order boolean: whether a later event of this origin came before it
home

drops: a broker dropped a message for one destination
from dropped; divided by broker
time_s share origin number publisher age_s
destination string: the broker it was for
reason string: why
subscribers bigint: how many subscribers wanted it there
broker string: the broker that dropped it

admissions: a subscriber asked for an on-time share, and was admitted or refused
from answered
subscriber home pattern
reliability double: the on-time share asked for
predicted_share double: the on-time share predicted
admitted boolean: whether it was admitted
reason string: the broker's answer in words
time_s double: when, on the home's clock

quarantine: a row of telemetry that is in no other table
from every kind; divided by kind
file string: the file it stands in
reason string: `wrong type`, `missing value`, `impossible time`, `impossible value`, `unknown broker` or
  `duplicate`
detail string: which column, and what it holds
content string: the row as JSON, at most 4,000 letters of it
kind string: of telemetry
""")
EVENTS, SUBSCRIPTIONS, TRANSFERS, WAITS, DELIVERIES, DROPS, ADMISSIONS, QUARANTINE = BASE_TABLES

DERIVED_TABLES = read_shapes("""\
link_distributions: a link, in one direction
source string: the broker that sends
target string: the broker that receives
count_rows count
s_per_kb_mean double: its mean
s_per_kb_variance double: its variance
s_per_kb_least double: the least seen, to one per cent
s_per_kb_most double: the most seen, to one per cent
s_per_kb_median double: as the histogram has it
s_per_kb_p90 double: nine of ten are below, as the histogram has it
s_per_kb_p99 double: 99 of 100 are below, as the histogram has it
s_per_kb_start double: where the histogram's first cell begins
s_per_kb_width double: of a cell
s_per_kb_weights array<double>: messages in each cell; the first and the last also hold what lies beyond them
sent double: messages sent whose arrival would have been recorded
lost double: of those, the ones that did not arrive
loss double: `lost` of `sent`; null: unknown

wait_distributions: the events of a publisher at a link's output queue
publisher
broker string: where they waited
target string: the broker they were sent to
count_rows count
waited_share double: of those that waited at all, longer than a microsecond
wait_s_mean double: its mean
wait_s_variance double: its variance
wait_s_most double: the most seen

broker_distributions: a broker that events entered at
broker string: its name
count_rows count
matching_s_mean double: its mean
matching_s_variance double: its variance
matching_s_most double: the most seen
stored_mean double: subscriptions that it searched, on average
matching_s_intercept double: seconds of matching an event with none stored (least squares)
matching_s_slope double: seconds that each subscription adds; 0 where their number never changed
queue_length_mean double: messages in its output queues at an arrival; null: no arrivals

publisher_distributions: a publisher at the broker where its events enter
publisher
broker string: where its events enter
count_rows count
first_s double: its first event, on the broker's clock
last_s double: its last
rate_per_s double: how often it published, while anything was published at its broker
gaps_scv double: squared coefficient of variation of the gaps between events; null: unknown
size_kb_mean double: its mean
size_kb_variance double: its variance
size_kb_most double: the most seen
sample sample: events as it sends them, at most 1,000, chosen by hash

matches: a subscriber wanted an event when it was published
divided by home
origin number
born_s double: when it was published, on the home's clock
subscriber delay_s_allowed
price double: what it was worth in time
weight double: events that it stands for
is_settled boolean: whether its fate is known: no later record can change it
home

reliability: a subscriber, and what reached it in time
subscriber home
count_rows bigint: settled rows of `matches` that these values are computed from
wanted double: events that those stand for
on_time double: of those, the ones that arrived in time
on_time_share double: `on_time` of `wanted`
on_time_share_low double: where the true share begins, with 95 % confidence (Wilson)
on_time_share_high double: where it ends
earning double: the sum of prices of those in time
offered double: the sum of prices of all of them

predictions: the prediction for a subscription
filled by other jobs
subscriber home pattern
model string: the model that predicted, or `twin`
on_time_share double: the share that will arrive in time
on_time_share_low double: the low end of its interval; of a twin, one deviation over its seeds
on_time_share_high double: the high end
made_at_s double: when, on the clock of the machine that predicted
learned_at_s double: when the model behind the prediction was learned
""")
LINKS, WAIT_DISTRIBUTIONS, BROKERS, PUBLISHERS, MATCHES, RELIABILITY, PREDICTIONS = DERIVED_TABLES

TABLES: dict[str, TableShape] = {each.name: each for each in (*BASE_TABLES, *DERIVED_TABLES)}


def tables_page() -> str:
    """Return the reference page of all tables, as Markdown."""
    lines = [
        "# Reference: the pipeline's tables",
        "",
        "<!-- Generated by `betimes pipeline tables --markdown`; a test compares. -->",
        "",
        "`betimes pipeline run --telemetry DIR --tables TABLES` writes them as Parquet, each into a folder",
        "below `TABLES/current`. Times are in seconds, sizes in kilobytes. [How to run it](../pipeline.md).",
        "",
        "## From telemetry, row by row",
    ]
    lines += [line for each in BASE_TABLES for line in _table_lines(each)]
    lines += ["", "## Derived from those"]
    lines += [line for each in DERIVED_TABLES for line in _table_lines(each)]
    return "\n".join(lines) + "\n"


def _table_lines(table: TableShape) -> list[str]:
    facts = [f"One row: {table.row}."]
    facts += [f"From: {table.source}."] if table.source else []
    facts += [f"One folder for each `{table.divided_by}`."] if table.divided_by else []
    facts += [] if table.is_filled else ["Other jobs fill it."]
    lines = [
        "",
        f"### {table.name}",
        "",
        " ".join(facts),
        "",
        "| column | type | meaning |",
        "| --- | --- | --- |",
    ]
    return lines + [f"| `{each.name}` | {_short(each.type)} | {each.meaning} |" for each in table.columns]


def _short(type_name: str) -> str:
    return "list of (topic, content, deadline_s, weight)" if type_name == SAMPLE else type_name
