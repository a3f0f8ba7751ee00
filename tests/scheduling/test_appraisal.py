"""Do the kernels say what equations (3) to (11) of 000 say, subscriber by subscriber?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.prediction.queues import (
    LINKS,
    Setting,
    Waiting,
    Wanting,
    Way,
    appraised,
    queue_arrays,
    settings_drawn,
    way_arrays,
)
from tests.scheduling import formulas

from betimes.scheduling.appraisal import (
    BENEFIT,
    DESTINATION,
    GOES,
    GONE,
    HOPELESS,
    HOPELESS_SLOT,
    STAYS,
    VERDICT,
    appraise_benefit,
    appraise_expired,
    appraise_lifetime,
    best_candidate,
    best_candidates,
    destination_end,
    success_by_way,
)

links = st.integers(0, LINKS - 1)


def away_from_epsilon(setting: Setting, link: int) -> bool:
    """Tell whether no chance is so near epsilon that two ways of rounding could differ."""
    return all(
        abs(chance - setting.hopeless_at) > 1e-9
        for message in setting.queue
        for chance in formulas.chances(setting, message, link)
    )


@given(settings_drawn, links)
def test_benefit_and_postponed_benefit_are_equations_3_and_8(setting, link):
    assume(away_from_epsilon(setting, link))
    found = appraised(appraise_benefit, setting, link)
    for slot, message in enumerate(setting.queue):
        if slot in found.benefit:
            expected = formulas.expected_benefit(setting, message, link)
            assert found.benefit[slot] == pytest.approx(expected, abs=1e-9)
            expected = formulas.postponed_benefit(setting, message, link)
            assert found.postponed[slot] == pytest.approx(expected, abs=1e-9)


@given(settings_drawn, links)
def test_a_message_is_hopeless_exactly_when_no_chance_is_above_epsilon(setting, link):
    assume(away_from_epsilon(setting, link))
    found = appraised(appraise_benefit, setting, link)
    for slot, message in enumerate(setting.queue):
        chances = formulas.chances(setting, message, link)
        hopeless = bool(chances) and all(chance <= setting.hopeless_at for chance in chances)
        assert (slot in found.hopeless) == hopeless
        assert (slot in found.benefit) == (bool(chances) and not hopeless)


def test_a_chance_of_exactly_epsilon_is_hopeless():
    message = Waiting(wanting=(Wanting(destination=0, delay_s_max=5.0),))
    setting = Setting(queue=(message,), ways={(0, 0): Way(s_per_kb_mean=0.1)}, hopeless_at=0.5)
    assert appraised(appraise_benefit, setting).hopeless == [0]


@pytest.mark.parametrize("appraise", [appraise_benefit, appraise_lifetime])
@given(setting=settings_drawn, link=links)
def test_grouping_subscribers_by_home_and_bound_changes_no_sum(appraise, setting, link):
    assume(away_from_epsilon(setting, link))
    grouped = appraised(appraise, setting, link)
    single = appraised(appraise, setting, link, grouped=False)
    assert grouped.hopeless == single.hopeless
    assert grouped.verdicts == single.verdicts
    assert grouped.benefit == pytest.approx(single.benefit, nan_ok=True)
    assert grouped.postponed == pytest.approx(single.postponed, nan_ok=True)
    assert grouped.lifetime_s == pytest.approx(single.lifetime_s, nan_ok=True)


@pytest.mark.long
@given(settings_drawn, links)
def test_remaining_lifetime_is_the_mean_over_those_not_yet_expired(setting, link):
    found = appraised(appraise_lifetime, setting, link)
    for slot, message in enumerate(setting.queue):
        remaining_s = [
            message.bound_s(one) - (setting.now_s - message.born_s)
            for one, _ in formulas.behind(setting, message, link)
        ]
        alive_s = [each for each in remaining_s if each >= 0]
        assert (slot in found.lifetime_s) == bool(alive_s)
        assert (slot in found.hopeless) == (bool(remaining_s) and not alive_s)
        if alive_s:
            assert found.lifetime_s[slot] == pytest.approx(sum(alive_s) / len(alive_s))


@pytest.mark.parametrize("appraise", [appraise_benefit, appraise_lifetime])
@given(setting=settings_drawn, link=links)
def test_what_goes_is_all_that_lies_behind_the_link(appraise, setting, link):
    found = appraised(appraise, setting, link)
    for (slot, destination), verdict in found.verdicts.items():
        if (link, destination) not in setting.ways:
            assert verdict == STAYS
        else:
            assert verdict == (HOPELESS if slot in found.hopeless else GOES)


@given(settings_drawn, links, st.floats(0.0, 50.0))
def test_a_chance_by_a_way_is_equation_5(setting, link, remaining_s):
    for (way_link, destination), way in setting.ways.items():
        message = Waiting(wanting=(), deadline_s=remaining_s)
        wanting = Wanting(destination=destination)
        expected = formulas.success(wanting, message, way, now_s=0.0, waits_count=False)
        found = success_by_way(way_arrays(setting.ways), way_link, destination, 50.0, remaining_s)
        assert found == pytest.approx(expected, abs=1e-9)


@given(settings_drawn)
def test_a_destination_has_expired_when_all_its_bounds_have_passed(setting):
    slots, rows = queue_arrays(setting.queue)
    results = np.zeros((5, len(slots)))
    count = appraise_expired(setting.now_s, len(setting.queue), slots, rows, results)
    late = [
        {
            one.destination
            for one in message.wanting
            if all(
                message.bound_s(other) < setting.now_s - message.born_s
                for other in message.wanting
                if other.destination == one.destination
            )
        }
        for message in setting.queue
    ]
    slots_found = results[HOPELESS_SLOT, :count].astype(int).tolist()
    assert slots_found == [slot for slot, destinations in enumerate(late) if destinations]
    for slot, message in enumerate(setting.queue):
        first, end = int(slots[slot, 0]), int(slots[slot, 0] + slots[slot, 1])
        for row in rows[first:end]:
            assert row[VERDICT] == (HOPELESS if int(row[DESTINATION]) in late[slot] else STAYS), message


@pytest.mark.parametrize("appraise", [appraise_benefit, appraise_lifetime])
def test_what_is_gone_is_not_looked_at(appraise):
    message = Waiting(wanting=(Wanting(destination=0), Wanting(destination=1)))
    slots, rows = queue_arrays((message,))
    rows[:, DESTINATION] = GONE
    results = np.zeros((5, 1))
    ways = way_arrays({(0, 0): Way(), (0, 1): Way()})
    assert appraise(0.0, 0, 1, slots, rows, ways, np.zeros(LINKS), 0.0, 0.0, 0.1, results) == (0, 0)
    assert appraise_expired(math.inf, 1, slots, rows, results) == 0


def test_rows_of_one_destination_end_where_the_next_begin():
    _, rows = queue_arrays(
        (
            Waiting(
                wanting=(
                    Wanting(destination=1, delay_s_max=10.0),
                    Wanting(destination=1, delay_s_max=30.0),
                    Wanting(destination=3),
                )
            ),
        )
    )
    assert [destination_end(rows, row, len(rows)) for row in range(3)] == [2, 2, 3]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 40))
def test_the_best_of_many_are_those_that_would_be_chosen_one_after_another(worths, count):
    results = np.zeros((5, len(worths)))
    results[BENEFIT] = worths
    ranked = sorted(range(len(worths)), key=lambda each: (-worths[each], each))[:count]
    assert best_candidates(results, len(worths), 1.0, 0.0, 0.0, count).tolist() == ranked
    assert best_candidate(results, len(worths), 1.0, 0.0, 0.0) == ranked[0]
