"""Is it the network of the paper, and does the paper's order of strategies come out of it?"""

from __future__ import annotations

import pytest

from betimes.experiments.figure import FigurePlan, curve_means
from betimes.experiments.wang.network import (
    OURS,
    PAPERS,
    PSD,
    SSD,
    at_rate,
    beats_claim,
    paper_world,
    peak,
    rate_rows,
    ratio,
    ratio_claim,
    run_row,
)
from betimes.model.distributions import Uniform
from betimes.model.errors import SettingError


def row(
    strategy: str, scenario: str = PSD, *, seed: int = 11, duration_s: float = 900.0
) -> dict[str, object]:
    return {"scenario": scenario, "strategy": strategy, "rate": 15.0, "seed": seed, "duration_s": duration_s}


def results(messages: dict[str, float]) -> list[dict[str, object]]:
    """Return made-up results: two seeds, the second with twice of everything."""
    return [
        {"strategy": name, "rate": 15.0, "seed": seed, "messages": value * seed, "earning": value * seed}
        for name, value in messages.items()
        for seed in (1, 2)
    ]


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


def test_rate_rows_hold_every_strategy_at_every_rate_for_every_seed() -> None:
    rows = rate_rows(FigurePlan(seeds=(1, 2)), SSD)
    assert {each["strategy"] for each in rows} == {*PAPERS, *OURS}
    assert len(rows) == len({(each["strategy"], each["rate"], each["seed"]) for each in rows})


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


def test_a_ratio_is_taken_seed_by_seed() -> None:
    made_up = results({"eb": 12.0, "fifo": 10.0})
    assert ratio(made_up, "eb", "fifo", "messages").mean == pytest.approx(1.2)
    assert ratio(made_up, "eb", "fifo", "messages").sd == pytest.approx(0.0)


def test_a_ratio_claim_holds_when_the_published_number_is_near() -> None:
    made_up = results({"eb": 12.0, "fifo": 10.0})
    assert ratio_claim(made_up, "EB over FIFO", "eb", "fifo", "messages", 1.2).held
    assert not ratio_claim(made_up, "EB over FIFO", "eb", "fifo", "messages", 1.3).held


def test_values_at_a_rate_and_means_over_seeds() -> None:
    made_up = results({"eb": 10.0})
    assert at_rate(made_up, "eb", "earning") == {1: 10.0, 2: 20.0}
    assert curve_means(made_up, "rate", "earning", strategy="eb") == [(15.0, 15.0)]


def test_the_peak_is_where_a_curve_is_highest() -> None:
    assert peak([(1, 1.0), (6, 3.0), (15, 2.0)]) == 6


@pytest.mark.parametrize(
    ("ours", "traffic", "held"), [(11.5, 11.0, True), (10.5, 11.0, False), (11.5, 12.0, False)]
)
def test_our_claim_needs_a_tenth_more_at_no_more_than_the_traffic_allowed(
    ours: float, traffic: float, held: bool
) -> None:
    made_up = results({"eb": 10.0, "late-binding": ours})
    for each in made_up:
        if each["strategy"] == "late-binding":
            each["messages"] = traffic * float(str(each["seed"]))
    assert beats_claim(made_up, "earning", "earning").held is held
