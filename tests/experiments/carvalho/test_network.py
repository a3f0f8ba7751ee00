"""Does one run of 004 do what the paper describes, and do comparisons compare what they say?"""

from __future__ import annotations

import math

import pytest

from betimes.experiments.carvalho.network import (
    COORD,
    INDIQOS,
    REFUSED_IN_A_ROW_MAX,
    Requests,
    ask_one_by_one,
    publishers,
    requests,
    run_of,
    run_row,
    settled_overlay,
    utilisation,
)
from betimes.experiments.figure import FigurePlan
from betimes.model.errors import SettingError

pytestmark = pytest.mark.figure


@pytest.fixture(scope="module")
def overlay():
    return settled_overlay(252, 1)


def test_the_overlay_is_the_papers_size_and_each_gets_a_copy_of_it(overlay):
    assert len(overlay.nodes) == 252
    assert 10 < len(overlay.links()) / 252 < 18
    again = settled_overlay(252, 1)
    assert again is not overlay
    assert again.links() == overlay.links()


def test_an_unknown_size_is_refused_with_those_there_are():
    with pytest.raises(SettingError, match="252, 1000, 4000"):
        settled_overlay(17, 1)


def test_thirty_per_cent_of_the_nodes_ask_once_for_every_type(overlay):
    wanted = requests(overlay.names, 20, 1)
    assert len(wanted) == len(set(wanted)) == 76 * 20
    assert wanted != sorted(wanted)
    assert len(publishers(overlay.names, 20, 1)) == 20


def test_it_ends_after_a_hundred_refusals_in_a_row_or_at_the_load_asked_for():
    asked = [("n1", number) for number in range(1000)]
    stuck = ask_one_by_one(asked, lambda _, number: (1.0, 5) if number < 7 else None, 0)
    assert (stuck.accepted, stuck.refused) == (7, REFUSED_IN_A_ROW_MAX)
    enough = ask_one_by_one(asked, lambda _, number: (float(number), 5) if number % 2 else None, 10)
    assert (enough.accepted, enough.refused, enough.latency_s, enough.messages) == (10, 10, 10.0, 5.0)
    none = ask_one_by_one([], lambda *_: None, 0)
    assert math.isnan(none.latency_s)


def test_requests_take_slots_and_giving_back_returns_all():
    fresh = settled_overlay(252, 1)
    asking = Requests(fresh, scheme=COORD, replicas=1, is_shared=False)
    asking.advertise(publishers(fresh.names, 3, 1))
    asked = ask_one_by_one(requests(fresh.names, 3, 1), asking.ask, 20)
    assert asked.accepted == 20
    assert utilisation(fresh) > 0.0
    asking.give_back()
    assert utilisation(fresh) == 0.0


def test_the_same_row_gives_the_same_result_and_a_load_is_kept():
    row = run_of(FigurePlan(seeds=(1,)), 1, scheme=INDIQOS, types=3, accepted_max=10)
    first = run_row(row)
    assert first == run_row(row)
    assert first["accepted"] == 10
