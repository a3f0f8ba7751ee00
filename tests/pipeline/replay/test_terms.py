"""Do rows of subscriptions become terms, and are those that cannot be set aside with their reasons?"""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from tests.pipeline.replay_tables import write_tables

from betimes.pipeline.replay.terms import ReplayError, known_brokers, subscriptions_in

ROWS = pa.table(
    {
        "subscriber": ["ann", None, "bob", "cas", "dan", "eve"],
        "home": ["a", "a", None, "mars", "b", "a"],
        "delay_s_max": [None, 1.0, 1.0, -1.0, math.nan, 2.0],
        "price": [None, 1.0, 1.0, 1.0, 1.0, 1e308],
    }
)


def test_rows_that_cannot_be_are_set_aside_with_their_reasons():
    found = subscriptions_in(ROWS, "wishes.csv", {"a", "b"})
    assert (found.row, found.terms.people) == ((1,), (("ann", "a"),))
    assert (found.terms.bound_s.tolist(), found.terms.price.tolist()) == ([math.inf], [1.0])
    told = [(row["row"], row["name"], row["reason"], row["detail"]) for row in found.set_aside.to_pylist()]
    terms = "delay_s_max is in seconds, 0 or more; price from 0 to 1e+09"
    assert told == [
        (2, None, "missing value", "subscriber"),
        (3, "bob", "missing value", "home"),
        (4, "cas", "unknown home", "mars is no broker of these tables; the tables know a, b"),
        (5, "dan", "impossible terms", f"delay_s_max is nan; {terms}"),
        (6, "eve", "impossible terms", f"price is 1e+308; {terms}"),
    ]


def test_without_terms_any_age_will_do_and_names_may_be_numbers():
    nothing = pa.array([None, None], pa.string())
    rows = pa.table({"subscriber": [7, 7], "home": [1, 2], "price": nothing})
    found = subscriptions_in(rows, "wishes.csv", {"1", "2"})
    assert found.terms.people == (("7", "1"), ("7", "2"))
    assert found.terms.person.tolist() == [0, 1]
    assert found.terms.price.tolist() == [1.0, 1.0]
    assert found.set_aside.num_rows == 0


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            ROWS.drop_columns(["home"]),
            "no column 'home', which every.*\nhint: there are subscriber, delay_s_max",
        ),
        (ROWS.slice(3, 1), "wishes.csv: row 1: unknown home: mars is no broker.*know a, b\nhint: no row"),
        (
            pa.table({"subscriber": ["a"], "home": ["a"], "price": [True]}),
            "'price' must hold numbers, not bool",
        ),
    ],
)
def test_where_none_can_be_the_first_is_told(rows, expected):
    with pytest.raises(ReplayError, match=expected):
        subscriptions_in(rows, "wishes.csv", {"a", "b"})


def test_brokers_are_known_by_events_and_links(tmp_path):
    write_tables(tmp_path, links=[("a", "b", 1.0, 0.25, 0.0)], matching_s={"a": 0.0})
    assert known_brokers(tmp_path, ["c"]) == {"a", "b", "c"}
