"""`match`: which subscribers want which event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from betimes.model.errors import BetimesError, SettingError
from betimes.pipeline.match.api import EventInput, divided_frame, match_input, planned, whole_frame
from betimes.pipeline.match.forms import ANSWER, Form
from betimes.pipeline.match.plan import INDEX_MB_MAX, MatchSettings
from betimes.pipeline.match.shared_set import SharedSet
from betimes.spark.index import SubscriptionIndex
from betimes.spark.rejected import rejected_events, rejected_subscriptions


class StreamError(BetimesError):
    """A match that a streaming frame cannot have: says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The answer of a match, and the rows that cannot be read; both frames are lazy."""

    matches: DataFrame
    rejected: DataFrame  # source, place, reason, detail


def match(
    events: DataFrame,
    subscriptions: DataFrame | SubscriptionIndex,
    *,
    ids: Sequence[str] = (),
    form: str = Form.LISTS,
    index_mb_max: float = INDEX_MB_MAX,
) -> Matched:
    """Return which subscribers want which event.

    A row of `events` is an event: the columns `ids` name it (by default `event`, or `origin` and `number`, or
    `id`), `topic` is its topic, and the other columns are its attributes, or `content` has them as JSON.
    Names are compared as filters do, whatever the session does: `Speed` is not `speed`.
    `form` is `lists` (an event and all its subscribers), `pairs` or `counts`. Events without a subscriber
    have no row.

    No job runs on the events, and they may be a streaming frame. Subscriptions are either an index that
    `prepare` made, or a frame, which is counted and read now. If their index would take more than
    `index_mb_max` MB, they are divided among tasks instead, which a streaming frame cannot have.

    `rejected` lists the events and, of a batch frame, the subscriptions that cannot be read. It reads the
    events again if both frames are computed.

    >>> events = spark.createDataFrame([(1, '{"speed": 61}'), (2, "{")], "event int, content string")
    >>> wishes = spark.createDataFrame(
    ...     [("anna", "speed > 50"), ("bert", "speed >")], "subscriber string, filter string"
    ... )
    >>> found = match(events, wishes)
    >>> found.matches.collect()
    [Row(event=1, subscribers=['anna'])]
    >>> sorted((row.place, row.reason) for row in found.rejected.collect())
    [('event 2', 'event that cannot be read'), ('subscriber bert', 'filter that cannot be read')]
    """
    if form not in {each.value for each in Form}:
        raise SettingError("form", form, "is no form of the answer", f"write {', '.join(Form)}")
    if isinstance(subscriptions, SubscriptionIndex):
        given = EventInput.of(events, ids, Form(form), subscriptions.subscriber_type)
        rejected = rejected_events(given)
        if not events.isStreaming:
            rejected = rejected.unionByName(subscriptions.rejected)
        return Matched(matches=_readable(whole_frame(given, subscriptions.shared), given), rejected=rejected)
    return _matched(events, subscriptions, ids, Form(form), MatchSettings(index_mb_max=index_mb_max))


def _matched(
    events: DataFrame, subscriptions: DataFrame, ids: Sequence[str], form: Form, settings: MatchSettings
) -> Matched:
    if subscriptions.isStreaming:
        hint = "read them as a table; prepare an index, and refresh it when the table changes"
        raise StreamError(f"subscriptions: is a streaming frame\nhint: {hint}")
    tables = match_input(events, subscriptions, form, ids)
    wanted, quarantine, plan = planned(tables, settings)
    rejected = rejected_events(tables.happened)
    if events.isStreaming and wanted is None:
        hint = f"raise index_mb_max above {plan.index_mb:,.0f}, or match in foreachBatch"
        raise StreamError(f"subscriptions: are too many for one index\nhint: {hint}")
    if not events.isStreaming:
        rejected = rejected.unionByName(rejected_subscriptions(events.sparkSession, quarantine))
    if wanted is None:
        found = divided_frame(tables, plan)
    else:
        found = whole_frame(tables.happened, SharedSet(events.sparkSession, wanted))
    return Matched(matches=_readable(found, tables.happened), rejected=rejected)


def _readable(found: DataFrame, events: EventInput) -> DataFrame:
    """Leave out the rows of events that cannot be read: they have no answer."""
    return found.where(f"`{ANSWER[events.form]}` IS NOT NULL")
