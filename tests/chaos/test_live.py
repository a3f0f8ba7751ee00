"""Do real brokers keep their word under faults? `benchmarks/chaos_network.py` is the long form."""

from __future__ import annotations

import asyncio

import pytest
from tests.chaos.live import LivePlan, run_live


@pytest.mark.live
@pytest.mark.long
def test_three_real_brokers_keep_their_word_under_faults():
    # The limits are those of a machine that does other things meanwhile.
    plan = LivePlan(brokers=3, faults=8, seconds=16.0, rate_per_s=60.0, heal_s_max=150.0)
    said: list[str] = []
    (verdict,) = asyncio.run(run_live(plan, tell=said.append))
    assert verdict.is_good, "\n".join(said)
    assert verdict.faults.total() == 8
    assert verdict.acknowledged > 100
