"""Is it the network of the paper, and does the paper's order of strategies come out of it?"""

from __future__ import annotations

import pytest

from betimes.experiments.wang.network import (
    PSD,
    SSD,
    paper_world,
    run_row,
)
from betimes.model.distributions import Uniform
from betimes.model.errors import SettingError


def row(
    strategy: str, scenario: str = PSD, *, seed: int = 11, duration_s: float = 900.0
) -> dict[str, object]:
    return {"scenario": scenario, "strategy": strategy, "rate": 15.0, "seed": seed, "duration_s": duration_s}


def test_publishers_state_the_bound_in_psd_and_subscribers_bound_and_price_in_ssd() -> None:
    assert paper_world(PSD, 15.0).deadline_s == Uniform(10.0, 30.0)
    assert paper_world(PSD, 15.0).tiers == ()
    assert paper_world(SSD, 15.0).deadline_s is None
    assert [(t.delay_s_max, t.price) for t in paper_world(SSD, 15.0).tiers] == [(10, 3), (30, 2), (60, 1)]


def test_the_rate_is_per_minute_and_publisher() -> None:
    assert paper_world(PSD, 15.0).publisher_rate_per_s == 0.25


def test_an_unknown_scenario_is_refused_with_a_hint() -> None:
    with pytest.raises(SettingError, match="psd or ssd"):
        paper_world("both", 15.0)


def test_a_row_of_parameters_gives_the_paper_s_measures() -> None:
    found = run_row(row("eb", duration_s=120.0))
    assert 0.0 < found["delivery_rate"] <= 1.0
    assert found["wanted"] > 0
    assert set(found["drops"]) <= {"expired", "hopeless"}


def test_in_psd_the_earning_is_the_number_in_time() -> None:
    found = run_row(row("fifo", duration_s=120.0))
    assert found["earning"] == pytest.approx(found["delivery_rate"] * found["wanted"])


@pytest.mark.figure
@pytest.mark.parametrize(("scenario", "measure"), [(PSD, "delivery_rate"), (SSD, "earning")])
def test_ours_beats_eb_beats_fifo_beats_rl_when_congested(scenario: str, measure: str) -> None:
    found = {name: run_row(row(name, scenario))[measure] for name in ("rl", "fifo", "eb", "late-binding")}
    assert sorted(found, key=lambda name: found[name]) == list(found)
