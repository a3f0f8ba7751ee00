"""Do waits follow the laws of queues where those are known exactly?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.prediction.queueing import (
    mean_wait_gg1_s,
    mean_wait_mm1_s,
    waiting_share,
    waits_gg1,
    waits_tail_scv,
)

loads = st.floats(0.01, 0.99).map(lambda load: np.array([load]))
ONE = np.array([1.0])


@given(loads)
def test_gg1_with_exponential_flows_is_mm1(load):
    assert mean_wait_gg1_s(load, 0.1 * ONE, ONE, ONE) == pytest.approx(mean_wait_mm1_s(load, 0.1 * ONE))
    assert waiting_share(load, ONE, ONE) == pytest.approx(load)
    assert waits_tail_scv(load, ONE) == pytest.approx(1.0)


@given(loads, st.floats(0.0, 4.0))
def test_poisson_arrivals_wait_as_pollaczek_and_khinchine_say(load, service_scv):
    expected = load * 0.1 * (1.0 + service_scv) / (2.0 * (1.0 - load))
    assert mean_wait_gg1_s(load, 0.1 * ONE, ONE, service_scv * ONE) == pytest.approx(expected)


@given(loads)
def test_what_comes_and_is_served_evenly_never_waits(load):
    assert mean_wait_gg1_s(load, ONE, 0.0 * ONE, 0.0 * ONE) == 0.0


@pytest.mark.parametrize("load", [1.0, 1.5])
def test_a_full_station_makes_wait_for_ever(load):
    assert np.isinf(mean_wait_mm1_s(load * ONE, ONE))
    assert np.isinf(mean_wait_gg1_s(load * ONE, ONE, ONE, ONE))
    assert np.isinf(waits_gg1(load * ONE, ONE, ONE, ONE).mean_s)


@pytest.mark.parametrize("load", [1.0, 1.5, 1e3, 1e9])
@pytest.mark.parametrize("arrivals_scv", [0.0, 1e-9, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("service_scv", [0.0, 1e-9, 1.0])
def test_beyond_its_limit_everybody_waits_however_even_the_flows(load, arrivals_scv, service_scv):
    waits = waits_gg1(load * ONE, ONE, arrivals_scv * ONE, service_scv * ONE)
    assert (waits.mean_s[0], waits.waiting_share[0]) == (np.inf, 1.0)
    assert np.isfinite(waits.tail_scv[0])


@given(loads, st.floats(0.0, 4.0), st.floats(0.0, 4.0))
def test_a_share_of_waiting_is_a_share(load, arrivals_scv, service_scv):
    assert 0.0 <= waiting_share(load, arrivals_scv * ONE, service_scv * ONE) <= 1.0
