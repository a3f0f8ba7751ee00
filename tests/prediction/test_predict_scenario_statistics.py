"""Do a scenario's numbers become those that predictions are made from?"""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.language.files.scenario_file import read_scenario
from betimes.model.distributions import Constant, Normal, Uniform
from betimes.model.topology import Scenario
from betimes.prediction.predict import predict, scenario_statistics

CITY = Path(__file__).resolve().parents[2] / "examples" / "city.toml"


def city():
    scenario = read_scenario(CITY.read_text(), "city.toml")
    assert isinstance(scenario, Scenario)
    return scenario


def test_everything_a_scenario_states_is_carried_over():
    statistics = scenario_statistics(city())
    links = {each.name: each for each in statistics.links}
    assert links["centre->north"].s_per_kb == Normal(0.06, 0.02, 0.0)
    assert links["north->airport"].s_per_kb == Constant(0.05)
    assert links["north->airport"].delay_s == Constant(0.03)
    assert "trains->station" in links
    publishers = {each.name: each for each in statistics.publishers}
    assert publishers["trains"].gaps_scv == 0.0
    assert publishers["weather"].gaps_scv == pytest.approx(1 / 3)
    assert publishers["road-sensors"].deadline_s == Uniform(5.0, 20.0)
    assert all(each.processing_s == Constant(0.002) for each in statistics.brokers)
    assert statistics.learned_at_s is None


def test_the_city_is_predicted():
    found = {
        each.subscriber: each for each in predict(scenario_statistics(city()), early_drop=True).subscribers
    }
    assert set(found) == {each.id for each in city().subscriptions}
    assert found["street-cleaning"].share == 1.0  # no bound on either side
    assert 0.1 < found["speed-control"].share < 1.0
