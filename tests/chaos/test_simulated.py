"""Does a network under faults keep its word? Schedules of faults in virtual time, each repeatable by seed.

`benchmarks/chaos_simulated.py` runs thousands of them.
"""

from __future__ import annotations

import logging

import pytest
from tests.chaos.simulated import run_schedule


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR)


@pytest.mark.long
def test_without_faults_all_is_well():
    verdict = run_schedule(0, faults=0)
    assert verdict.is_good, str(verdict)
    assert verdict.deliveries >= 7 * verdict.acknowledged > 700  # each subscriber gets everything


@pytest.mark.long
def test_the_same_seed_gives_the_same_run():
    assert str(run_schedule(1)) == str(run_schedule(1))


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 24, 4))
def test_three_brokers_keep_their_word_under_faults(first):
    for seed in range(first, first + 4):
        verdict = run_schedule(seed)
        assert verdict.is_good, f"seed {seed}: {verdict}"


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1012, 3))
def test_five_brokers_keep_their_word_under_faults(first):
    for seed in range(first, first + 3):
        verdict = run_schedule(seed, brokers=5, faults=12)
        assert verdict.is_good, f"seed {seed}: {verdict}"
