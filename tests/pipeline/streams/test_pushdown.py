"""Does the broker select the same rows as Spark would, for every predicate that it is given?"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)
from tests.client.blocking.test_ranges import keeping_broker, publish
from tests.pipeline.schemas import schema_of
from tests.pipeline.streams.test_rows import rows

from betimes.broker.delivery.publication import Publication
from betimes.language.filters.parse import parse_filter
from betimes.pipeline.streams.data_source import register
from betimes.pipeline.streams.pushdown import push_filters

DDL = "speed double, kind string, lanes bigint, on boolean"
SCHEMA = schema_of(DDL)
SIGNS: dict[type[Any], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: lambda value, values: value in values,
}
NUMBERS = st.sampled_from([0.0, -0.0, 5.0, 50.5, 1e300, -7.0]) | st.floats(allow_nan=False)
TEXTS = st.sampled_from(
    ["car", "bus", "5", "5.0", "true", "TRUE", "nan", "inf", "1_0", " 5", "it's", "a\\b", "", "ä", "50.5"]
)
CONTENTS = st.one_of(TEXTS, NUMBERS.map(repr), st.integers(-10, 60).map(str))
PREDICATES = st.one_of(
    st.builds(lambda kind, value: kind(("speed",), value), st.sampled_from(list(SIGNS)[:5]), NUMBERS),
    st.builds(lambda kind, value: kind(("kind",), value), st.sampled_from(list(SIGNS)[:5]), TEXTS),
    st.builds(lambda values: In(("kind",), tuple(values)), st.lists(TEXTS, min_size=1, max_size=3)),
    st.builds(lambda values: In(("speed",), tuple(values)), st.lists(NUMBERS, min_size=1, max_size=3)),
    st.builds(lambda value: GreaterThan(("lanes",), value), st.integers(0, 9)),
    st.builds(lambda value: EqualTo(("on",), value), st.booleans()),
)


def is_true(predicate: Filter, row: dict[str, Any]) -> bool:
    """Return whether a predicate is true of a row as SQL means it: of NULL nothing is."""
    value = row[predicate.attribute[0]]  # type: ignore[attr-defined]
    if isinstance(predicate, IsNotNull):
        return value is not None
    return value is not None and SIGNS[type(predicate)](value, predicate.value)  # type: ignore[attr-defined]


@given(
    st.lists(PREDICATES, min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["speed", "kind", "lanes", "on"]), CONTENTS),
    st.booleans(),
)
def test_what_the_broker_selects_and_spark_checks_is_what_spark_alone_would_select(found, content, as_json):
    import json

    if as_json:
        packet = mqtt5.PublishPacket("t", json.dumps(content).encode(), content_type="application/json")
    else:
        packet = mqtt5.PublishPacket("t", b"", user_properties=list(content.items()))
    (row,) = rows(DDL, packet)
    filters = [*found, *(IsNotNull(each.attribute) for each in found)]
    text, left = push_filters(filters, SCHEMA, None)
    broker = Publication(packet, "t", born_s=0.0).attributes()
    passes = text is None or parse_filter(text).matches(broker)
    assert (passes and all(is_true(each, row) for each in left)) == all(
        is_true(each, row) for each in filters
    )


def test_what_the_two_sides_would_read_differently_stays_with_spark():
    left = [
        EqualTo(("kind",), "5"),
        EqualTo(("kind",), "it's"),
        GreaterThan(("kind",), "car"),
        GreaterThan(("lanes",), 2),
        EqualTo(("on",), True),
        Not(EqualTo(("kind",), "car")),
        StringContains(("kind",), "a"),
        IsNotNull(("lanes",)),
        EqualTo(("topic",), "t"),
    ]
    pushed = [GreaterThan(("speed",), 50), EqualTo(("kind",), "car"), IsNotNull(("speed",))]
    text, stays = push_filters([*left, *pushed], SCHEMA, "lanes = 2 OR on")
    assert text == "(lanes = 2 OR on) AND `speed` > 50.0 AND `kind` = 'car'"
    assert stays == left
    assert push_filters(left, SCHEMA, "on") == ("on", left)


@pytest.mark.spark
@pytest.mark.live
def test_a_predicate_reaches_the_broker_and_is_seen_in_the_plan(spark):
    register(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        with keeping_broker() as broker:
            publish(broker, range(1, 101))
            read = spark.read.format("betimes").schema("speed double, id string").option("topic", "t")
            read = read.option("url", f"mqtt://127.0.0.1:{broker.port}")
            pushing = read.option("pushFilters", "true").load().where("speed > 90")
            plan = pushing._jdf.queryExecution().explainString(
                spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
            )
            assert "GreaterThan(speed,90.0)" in plan
            before = broker.hub.replay.replayed if broker.hub.replay else 0
            found = {row.id for row in pushing.collect()}
            assert broker.hub.replay is not None
            assert broker.hub.replay.replayed - before == 10
            assert found == {f"b1:{number}" for number in range(91, 101)}
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
