"""The tables of the pipeline and the meaning of their columns: the only definition.

Every table is a folder of Parquet files with exactly these columns. `docs/reference/tables.md` is generated
from this file (`betimes pipeline tables --markdown`), and a test checks that the page is up to date.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

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


_text, _number = partial(Column, type="string"), partial(Column, type="double")
_whole, _flag = partial(Column, type="bigint"), partial(Column, type="boolean")


def table(
    name: str,
    row: str,
    *columns: Column,
    divided_by: str | None = None,
    source: str = "",
    is_filled: bool = True,
) -> TableShape:
    """Return a table of these columns."""
    return TableShape(
        name=name, row=row, columns=columns, divided_by=divided_by, source=source, is_filled=is_filled
    )


TIME = _number("time_s", "when, in seconds on the clock of the broker that wrote the row")
SHARE = _number("share", "share of all events that the broker records: the row stands for 1/share events")
AGE = _number("age_s", "the message's own age, which does not depend on any clock")
ORIGIN = _text("origin", "the broker that numbered the event: it entered there")
NUMBER = _whole("number", "the event's number there")
PUBLISHER = _text("publisher", "the client that published it")
SUBSCRIBER = _text("subscriber", "the client that subscribed")
HOME = _text("home", "the broker where the subscriber is")
_PASSAGE = (TIME, SHARE, ORIGIN, NUMBER, PUBLISHER, AGE)

EVENTS = table(
    "events",
    "an event entered at a broker",
    TIME,
    SHARE,
    ORIGIN,
    NUMBER,
    PUBLISHER,
    _text("topic", "where it was published to"),
    _number("size_kb", "its size"),
    _number("deadline_s", "the publisher's bound on delay; infinity: none"),
    _whole("wanted", "how many subscribers the broker found for it"),
    _text("content", "its attributes, as JSON"),
    _whole("stored", "subscriptions that the broker searched"),
    _number("matching_s", "the seconds that it took"),
    _text("broker", "where it entered"),
    source="published",
    divided_by="broker",
)
SUBSCRIPTIONS = table(
    "subscriptions",
    "a subscription held, with these terms, from one time to another",
    SUBSCRIBER,
    HOME,
    _text("pattern", "of topics, as written"),
    _text("filter", "of content, as written"),
    _number("delay_s_max", "how old a message may be; infinity: any age"),
    _number("price", "what a message in time is worth"),
    _number("reliability", "the on-time share asked for; 0: none"),
    _flag("is_shared", "whether it is a shared subscription (`$share/…`), whose members take turns"),
    _number("from_s", "when it began, on the home's clock"),
    _number("until_s", "when it ended, on the home's clock; null: it still holds"),
    source="subscribed and unsubscribed",
)
TRANSFERS = table(
    "transfers",
    "a message came off a link",
    *_PASSAGE,
    _number("transfer_s", "how long the link took"),
    _number("size_kb", "the event's size"),
    _text("source", "the broker that sent it"),
    _text("target", "the broker that got it"),
    source="received",
    divided_by="target",
)
WAITS = table(
    "waits",
    "a broker gave a message to a link, after it waited",
    *_PASSAGE,
    _number("wait_s", "how long it waited there"),
    _number("size_kb", "the event's size"),
    _whole("destinations", "the brokers that this copy was for"),
    _text("target", "the broker it was sent to"),
    _text("source", "the broker where it waited"),
    source="sent",
    divided_by="source",
)
DELIVERIES = table(
    "deliveries",
    "a message reached a subscriber",
    *_PASSAGE,
    SUBSCRIBER,
    _number("delay_s_allowed", "the stricter of both sides' bounds"),
    _number("price", "what it is worth in time"),
    _flag("on_time", "whether `age_s` is within `delay_s_allowed`"),
    _flag("out_of_order", "whether a later event of this origin came before it"),
    HOME,
    source="delivered",
    divided_by="home",
)
DROPS = table(
    "drops",
    "a broker dropped a message for one destination",
    *_PASSAGE,
    _text("destination", "the broker it was for"),
    _text("reason", "why"),
    _whole("subscribers", "how many subscribers wanted it there"),
    _text("broker", "the broker that dropped it"),
    source="dropped",
    divided_by="broker",
)
ADMISSIONS = table(
    "admissions",
    "a subscriber asked for an on-time share, and was admitted or refused",
    SUBSCRIBER,
    HOME,
    _text("pattern", "of topics, as written"),
    _number("reliability", "the on-time share asked for"),
    _number("predicted_share", "the on-time share predicted"),
    _flag("admitted", "whether it was admitted"),
    _text("reason", "the broker's answer in words"),
    _number("time_s", "when, on the home's clock"),
    source="answered",
)
QUARANTINE = table(
    "quarantine",
    "a row of telemetry that is in no other table",
    _text("file", "the file it stands in"),
    _text("reason", "`wrong type`, `missing value`, `impossible time`, `impossible value`, "
          "`unknown broker` or `duplicate`"),
    _text("detail", "which column, and what it holds"),
    _text("content", "the row as JSON, at most 4,000 letters of it"),
    _text("kind", "of telemetry"),
    source="every kind",
    divided_by="kind",
)  # fmt: skip

_COUNTS = (
    _whole("count_rows", "rows that these values are computed from"),
    _number("count", "messages that those rows stand for"),
)


def _moments(what: str) -> tuple[Column, ...]:
    return (
        _number(f"{what}_mean", "its mean"),
        _number(f"{what}_variance", "its variance"),
        _number(f"{what}_most", "the most seen"),
    )


def _spread(what: str) -> tuple[Column, ...]:
    return (
        *_moments(what)[:2],
        _number(f"{what}_least", "the least seen, to one per cent"),
        _number(f"{what}_most", "the most seen, to one per cent"),
        _number(f"{what}_median", "as the histogram has it"),
        _number(f"{what}_p90", "nine of ten are below, as the histogram has it"),
        _number(f"{what}_p99", "99 of 100 are below, as the histogram has it"),
        _number(f"{what}_start", "where the histogram's first cell begins"),
        _number(f"{what}_width", "of a cell"),
        Column(
            f"{what}_weights",
            "messages in each cell; the first and the last also hold what lies beyond them",
            "array<double>",
        ),
    )


LINKS = table(
    "link_distributions",
    "a link, in one direction",
    _text("source", "the broker that sends"),
    _text("target", "the broker that receives"),
    *_COUNTS,
    *_spread("s_per_kb"),
    _number("sent", "messages sent whose arrival would have been recorded"),
    _number("lost", "of those, the ones that did not arrive"),
    _number("loss", "`lost` of `sent`; null: unknown"),
)


WAIT_DISTRIBUTIONS = table(
    "wait_distributions",
    "the events of a publisher at a link's output queue",
    PUBLISHER,
    _text("broker", "where they waited"),
    _text("target", "the broker they were sent to"),
    *_COUNTS,
    _number("waited_share", "of those that waited at all, longer than a microsecond"),
    *_moments("wait_s"),
)
BROKERS = table(
    "broker_distributions",
    "a broker that events entered at",
    _text("broker", "its name"),
    *_COUNTS,
    *_moments("matching_s"),
    _number("stored_mean", "subscriptions that it searched, on average"),
    _number("matching_s_intercept", "seconds of matching an event with none stored (least squares)"),
    _number("matching_s_slope", "seconds that each subscription adds; 0 where their number never changed"),
    _number("queue_length_mean", "messages in its output queues at an arrival; null: no arrivals"),
)
PUBLISHERS = table(
    "publisher_distributions",
    "a publisher at the broker where its events enter",
    PUBLISHER,
    _text("broker", "where its events enter"),
    *_COUNTS,
    _number("first_s", "its first event, on the broker's clock"),
    _number("last_s", "its last"),
    _number("rate_per_s", "how often it published, while anything was published at its broker"),
    _number("gaps_scv", "squared coefficient of variation of the gaps between events; null: unknown"),
    *_moments("size_kb"),
    Column("sample", "events as it sends them, at most 1,000, chosen by hash", SAMPLE),
)  # fmt: skip
MATCHES = table(
    "matches",
    "a subscriber wanted an event when it was published",
    ORIGIN,
    NUMBER,
    _number("born_s", "when it was published, on the home's clock"),
    SUBSCRIBER,
    _number("delay_s_allowed", "the stricter of both sides' bounds"),
    _number("price", "what it was worth in time"),
    _number("weight", "events that it stands for"),
    _flag("is_settled", "whether its fate is known: no later record can change it"),
    HOME,
    divided_by="home",
)
RELIABILITY = table(
    "reliability",
    "a subscriber, and what reached it in time",
    SUBSCRIBER,
    HOME,
    _whole("count_rows", "settled rows of `matches` that these values are computed from"),
    _number("wanted", "events that those stand for"),
    _number("on_time", "of those, the ones that arrived in time"),
    _number("on_time_share", "`on_time` of `wanted`"),
    _number("on_time_share_low", "where the true share begins, with 95 % confidence (Wilson)"),
    _number("on_time_share_high", "where it ends"),
    _number("earning", "the sum of prices of those in time"),
    _number("offered", "the sum of prices of all of them"),
)
PREDICTIONS = table(
    "predictions",
    "the prediction for a subscription",
    SUBSCRIBER,
    HOME,
    _text("pattern", "of topics, as written"),
    _text("model", "the model that predicted, or `twin`"),
    _number("on_time_share", "the share that will arrive in time"),
    _number("on_time_share_low", "the low end of its interval; of a twin, one deviation over its seeds"),
    _number("on_time_share_high", "the high end"),
    _number("made_at_s", "when, on the clock of the machine that predicted"),
    _number("learned_at_s", "when the model behind the prediction was learned"),
    is_filled=False,
)
BASE_TABLES = (EVENTS, SUBSCRIPTIONS, TRANSFERS, WAITS, DELIVERIES, DROPS, ADMISSIONS, QUARANTINE)
DERIVED_TABLES = (LINKS, WAIT_DISTRIBUTIONS, BROKERS, PUBLISHERS, MATCHES, RELIABILITY, PREDICTIONS)
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
