"""Is the network of the paper the one that is drawn, and is it predicted as well as claimed?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.experiments.pongthawornkamol.fig4_to_7 import errors
from betimes.experiments.pongthawornkamol.network import GAPS_SCV, MATCHING, paper_network
from betimes.model.distributions import Choice
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import predict
from betimes.simulator.matching_stations import run_stations


def test_a_seed_draws_the_same_network_again():
    assert paper_network(3) == paper_network(3)
    assert paper_network(3) != paper_network(4)


def test_the_network_has_the_numbers_of_table_three():
    network = paper_network(1)
    sizes = [len(part) for part in (network.brokers, network.publishers, network.subscriptions)]
    assert sizes == [20, 8, 100]
    assert len(network.links) == 2 * 19 + 8 + 100
    assert {each.topic for each in network.publishers} == {each.pattern for each in network.subscriptions}
    assert sum(each.rate_per_s for each in network.publishers) == 8.0


def test_other_flows_leave_the_rest_as_it_was():
    one, other = paper_network(2), paper_network(2, gaps="deterministic", matching="uniform")
    assert one.subscriptions == other.subscriptions
    assert one.links == other.links


def test_an_exponent_makes_popular_contents_more_popular():
    laws = [paper_network(1, alpha=alpha).publishers[0].attributes["a0"] for alpha in (1.0, 2.0)]
    plain, steep = (law.weights for law in laws if isinstance(law, Choice))
    assert max(steep) > max(plain)
    assert np.argmax(steep) == np.argmax(plain)


@pytest.mark.figure
@pytest.mark.parametrize("gaps", GAPS_SCV)
@pytest.mark.parametrize("matching", MATCHING)
def test_spread_waits_predict_better_than_mean_waits(gaps, matching):
    network = paper_network(1, gaps=gaps, matching=matching)
    measured = run_stations(network, 1, duration_s=3000.0, warm_up_s=50.0).shares
    found = {
        model: errors(np.array([each.share for each in predict(network, model).subscribers]), measured)[0]
        for model in ForecastModel
    }
    assert found[ForecastModel.WAIT] < found[ForecastModel.MM1]
    assert found[ForecastModel.WAIT] < 0.075
