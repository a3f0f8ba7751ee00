"""Does Spark SQL say the same of every filter and event: true, false and unknown?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy
from tests.filter_strategies import (
    DIGITS_NAMES,
    FLAG_NAMES,
    NUMBER_NAMES,
    TEXT_NAMES,
    typed_events,
    typed_filters,
    written_name,
)
from tests.oracles.three_valued_logic import evaluate

from betimes.language.filters.parse import parse_filter, parse_predicate

pytestmark = pytest.mark.spark

EVENTS = 120
FILTERS = 480
FILTERS_PER_JOB = 60

T = TypeVar("T")

# What a random draw might not bring, and what databases like to disagree on.
CHOSEN = [
    "NOT (speed > 0.5 AND kind = 'a')",
    "NOT (speed IS NULL OR NOT (kind IS NULL))",
    "speed NOT IN (0.5, NULL)",
    "NOT speed IN (0.5, NULL)",
    "speed IN (NULL)",
    "speed NOT BETWEEN 0.1 AND 2",
    "speed BETWEEN NULL AND 0.1",
    "NOT speed BETWEEN NULL AND 0.1",
    "kind NOT BETWEEN 'ab' AND 'b'",
    "kind < 'é' AND kind > 'B'",
    "kind > '😀'",
    "kind >= '\ud7ff'",
    "kind LIKE 'a%'",
    "kind NOT LIKE 'a%'",
    "NOT kind NOT LIKE '%'",
    r"kind LIKE '10\%'",
    r"kind LIKE 'a\_b%'",
    "kind LIKE 'a/_b' ESCAPE '/'",
    r"kind = 'a\\b' OR kind = 'it''s' OR kind = 'it\'s'",
    r"kind IN ('\u0061', '\141b', '\x61', r'a\b')",
    'kind = "a"',
    "kind LIKE ''",
    "open OR NULL",
    "open AND NULL",
    "NOT open AND open IS NOT NULL",
    "NOT (open <=> NULL)",
    "open = 'true'",
    "open <> 'false' OR open < TRUE",
    "open IS NOT FALSE",
    "speed = '5' OR speed > '5.5'",
    "zip = '5' OR zip > '10'",
    "zip = 5 OR zip > 9",
    "zip <> 7",
    "zip < '5' AND zip > 5",
    "! open = false",
    "NOT open = false AND NOT NOT kind = 'b' OR speed <> 0.1",
    "5 < speed AND 'a' = kind AND TRUE = open",
    "speed = .1 OR speed = 1e-7 OR speed = -2.5 OR speed = 5.",
    "NULL = NULL",
    "NULL <=> NULL",
    "1 = 1 AND NOT 'a' > 'b'",
]


def collected(strategy: SearchStrategy[T], count: int) -> list[T]:
    """Return as many draws as asked for, the same ones on every run."""
    found: list[T] = []

    @settings(
        max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def collect(drawn: T) -> None:
        found.append(drawn)

    run: Callable[[], None] = collect
    run()
    return found


def test_our_three_values_are_those_of_spark_sql(spark):
    events = collected(typed_events(), EVENTS)
    texts = list(CHOSEN)
    texts += collected(typed_filters(), FILTERS)
    columns = [
        *(f"{written_name(name)} DOUBLE" for name in NUMBER_NAMES),
        *(f"{written_name(name)} STRING" for name in (*TEXT_NAMES, *DIGITS_NAMES)),
        *(f"{written_name(name)} BOOLEAN" for name in FLAG_NAMES),
    ]
    names = (*NUMBER_NAMES, *TEXT_NAMES, *DIGITS_NAMES, *FLAG_NAMES)
    table = spark.createDataFrame(
        [tuple(event[name] for name in names) for event in events], ", ".join(columns)
    ).coalesce(1)
    different = []
    for start in range(0, len(texts), FILTERS_PER_JOB):
        batch = texts[start : start + FILTERS_PER_JOB]
        answers = table.selectExpr(*(f"({text}) AS f{number}" for number, text in enumerate(batch))).collect()
        for number, text in enumerate(batch):
            predicate, read = parse_predicate(text), parse_filter(text)
            for event, answer in zip(events, answers, strict=True):
                ours = evaluate(predicate, event)
                if ours is not answer[number] or read.matches(event) is not (ours is True):
                    different.append((text, event, ours, answer[number]))
    assert not different, different[:5]


def test_where_keeps_the_rows_that_match(spark):
    table = spark.createDataFrame(
        [(1.0, "car"), (6.0, "car"), (7.0, None), (None, "car")], "speed DOUBLE, kind STRING"
    )
    for text in (
        "speed > 5",
        "NOT speed > 5",
        "speed > 5 AND kind = 'car'",
        "NOT (speed > 5 AND kind = 'car')",
    ):
        kept = [row.asDict() for row in table.where(text).collect()]
        read = parse_filter(text)
        assert kept == [row.asDict() for row in table.collect() if read.matches(row.asDict())]
