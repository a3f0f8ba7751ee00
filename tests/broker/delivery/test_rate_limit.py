"""Does a bucket let through what its rate allows, and no more?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.delivery.rate_limit import TokenBucket


def test_a_seconds_worth_goes_at_once_and_then_the_rate():
    bucket = TokenBucket(10.0)
    assert [bucket.take(5.0) for _ in range(12)] == [True] * 10 + [False] * 2
    assert [bucket.take(5.25) for _ in range(4)] == [True, True, False, False]
    assert sum(bucket.take(100.0) for _ in range(50)) == 10  # no more is saved than a second's worth


def test_a_rate_below_one_a_second_lets_one_through():
    bucket = TokenBucket(0.5)
    assert [bucket.take(now_s) for now_s in (0.0, 1.0, 2.0, 3.0, 4.0)] == [True, False, True, False, True]


def test_what_is_spent_on_credit_is_paid_back_in_time():
    bucket = TokenBucket(10.0)
    assert bucket.spend(10, 0.0) == 0.0
    assert bucket.spend(5, 0.0) == pytest.approx(0.5)
    assert bucket.spend(5, 0.0) == pytest.approx(1.0)
    assert bucket.spend(0, 0.5) == pytest.approx(0.5)
    assert bucket.spend(0, 1.0) == 0.0
    assert not bucket.take(1.0)
    assert bucket.take(1.2)


@given(
    st.floats(0.1, 1000.0),
    st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 50)), max_size=50),
)
def test_who_waits_as_long_as_told_never_exceeds_the_rate(per_s, steps):
    bucket, now_s, spent = TokenBucket(per_s), 0.0, 0
    for idle_s, count in steps:
        now_s += idle_s
        spent += count
        now_s += bucket.spend(count, now_s)
        assert spent <= (now_s * per_s + max(per_s, 1.0)) * (1.0 + 1e-9) + 1e-6
