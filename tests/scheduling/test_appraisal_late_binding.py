"""Does a free link take what it serves about as well as any other, and leave the rest?"""

from __future__ import annotations

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
from tests.scheduling.formulas import success

from betimes.scheduling.appraisal import (
    DESTINATION,
    GOES,
    HOPELESS,
    STAYS,
    appraise_any_way,
    better_by,
    destination_end,
    earliest_way,
    hope_elsewhere,
    prospects,
)

links = st.integers(0, LINKS - 1)


def earning(
    setting: Setting,
    message: Waiting,
    destination: int,
    link: int,
    after_s: float,
    *,
    waits_count: bool = False,
) -> float:
    """Return what a destination would bring by a link after a while, in plain words."""
    if (link, destination) not in setting.ways:
        return 0.0
    way = setting.ways[link, destination]
    return sum(
        success(one, message, way, setting.now_s, after_s, waits_count=waits_count) * one.price
        for one in message.wanting
        if one.destination == destination
    )


def reachable(setting: Setting, destination: int) -> bool:
    return any((link, destination) in setting.ways for link in range(LINKS))


def until_free_s(setting: Setting, link: int) -> float:
    return max(setting.free_at_s[link] - setting.now_s, 0.0)


def arrival_s(setting: Setting, message: Waiting, destination: int, link: int, start_s: float) -> float:
    way = setting.ways[link, destination]
    return start_s + way.wait_s + way.fixed_s + message.size_kb * way.s_per_kb_mean


def here_and_elsewhere(setting: Setting, slot: int, destination: int, link: int) -> tuple[float, float]:
    """Return what is compared: this link now and the earliest other, if earlier and with hope; with waits."""
    message = setting.queue[slot]
    here = earning(setting, message, destination, link, 0.0, waits_count=True)
    others = [
        (arrival_s(setting, message, destination, other, until_free_s(setting, other)), other)
        for other in range(LINKS)
        if other != link and (other, destination) in setting.ways
    ]
    if not others or (link, destination) not in setting.ways:
        return here, 0.0
    other_s, other = min(others)
    if other_s >= arrival_s(setting, message, destination, link, 0.0):
        return here, 0.0
    if hope(setting, message, destination, other) <= setting.hopeless_at:
        return here, 0.0
    start_s = until_free_s(setting, other)
    return here, earning(setting, message, destination, other, start_s, waits_count=True)


def hope(setting: Setting, message: Waiting, destination: int, link: int) -> float:
    """Return the best chance by a link once it is free."""
    way = setting.ways.get((link, destination))
    after_s = until_free_s(setting, link)
    return (
        max(
            success(one, message, way, setting.now_s, after_s, waits_count=False)
            for one in message.wanting
            if one.destination == destination
        )
        if way
        else 0.0
    )


def chances(
    setting: Setting, slot: int, destination: int, link: int, *, by_this_link_only: bool = False
) -> list[float]:
    """Return every subscriber's chance by every way; other links count from when they are free."""
    message = setting.queue[slot]
    return [
        success(
            one,
            message,
            way,
            setting.now_s,
            0.0 if by == link else until_free_s(setting, by),
            waits_count=False,
        )
        for (by, to), way in setting.ways.items()
        for one in message.wanting
        if to == destination == one.destination and (by == link or not by_this_link_only)
    ]


@given(settings_drawn, links)
def test_a_link_takes_a_destination_only_where_no_earlier_way_earns_clearly_more(setting, link):
    found = appraised(appraise_any_way, setting, link)
    for (slot, destination), verdict in found.verdicts.items():
        here, elsewhere = here_and_elsewhere(setting, slot, destination, link)
        share = 1.0 - setting.contention
        if verdict == GOES:
            assert here >= share * elsewhere - 1e-9
        elif verdict == STAYS:
            own = chances(setting, slot, destination, link, by_this_link_only=True)
            leaves_it = here <= share * elsewhere + 1e-9
            assert leaves_it or max(own, default=0.0) <= setting.hopeless_at + 1e-9


@given(settings_drawn, links)
def test_where_nothing_waits_nothing_is_given_away(setting, link):
    calm = Setting(
        queue=setting.queue,
        ways=setting.ways,
        now_s=setting.now_s,
        free_at_s=setting.free_at_s,
        hopeless_at=setting.hopeless_at,
        contention=0.0,
    )
    for (slot, destination), verdict in appraised(appraise_any_way, calm, link).verdicts.items():
        if verdict == GOES:
            here, elsewhere = here_and_elsewhere(calm, slot, destination, link)
            assert here >= elsewhere - 1e-9


@given(settings_drawn, links)
def test_nothing_goes_by_a_way_that_is_not_open(setting, link):
    for (_, destination), verdict in appraised(appraise_any_way, setting, link).verdicts.items():
        if verdict == GOES:
            assert (link, destination) in setting.ways


@given(settings_drawn, links)
def test_a_destination_is_hopeless_exactly_when_it_is_by_every_way(setting, link):
    found = appraised(appraise_any_way, setting, link)
    for (slot, destination), verdict in found.verdicts.items():
        every = chances(setting, slot, destination, link)
        assume(all(abs(chance - setting.hopeless_at) > 1e-9 for chance in every))
        no_hope = all(chance <= setting.hopeless_at for chance in every)
        assert (verdict == HOPELESS) == (no_hope and reachable(setting, destination))
        assert (slot in found.hopeless) == (
            HOPELESS in [v for (s, _), v in found.verdicts.items() if s == slot]
        )


@given(settings_drawn, links)
def test_what_is_weighed_is_what_would_go(setting, link):
    found = appraised(appraise_any_way, setting, link)
    for slot, message in enumerate(setting.queue):
        going = [to for (at, to), verdict in found.verdicts.items() if at == slot and verdict == GOES]
        assert (slot in found.benefit) == bool(going)
        if going:
            now = sum(earning(setting, message, to, link, 0.0) for to in going)
            later = sum(earning(setting, message, to, link, setting.postponed_s) for to in going)
            assert found.benefit[slot] == pytest.approx(now, abs=1e-8)
            assert found.postponed[slot] == pytest.approx(later, abs=1e-9)


@given(settings_drawn)
def test_when_all_links_are_free_some_link_takes_whatever_has_hope(setting):
    free = Setting(
        queue=setting.queue, ways=setting.ways, now_s=30.0, hopeless_at=0.1, contention=setting.contention
    )
    by_link = [appraised(appraise_any_way, free, link).verdicts for link in range(LINKS)]
    for place in by_link[0]:
        verdicts = [verdicts[place] for verdicts in by_link]
        if reachable(free, place[1]):
            assert GOES in verdicts or verdicts == [HOPELESS] * LINKS
        else:
            assert verdicts == [STAYS] * LINKS  # a way may come back


@given(settings_drawn, links)
def test_prospects_are_equation_3_and_the_best_chance_of_one_destination(setting, link):
    ways = way_arrays(setting.ways)
    until_free = np.array([until_free_s(setting, each) for each in range(LINKS)])
    for slot, message in enumerate(setting.queue):
        _, rows = queue_arrays((message,))
        row = 0
        while row < len(rows):
            stop = destination_end(rows, row, len(rows))
            facts = (rows, row, stop, message.size_kb, setting.now_s - message.born_s)
            destination = int(rows[row, DESTINATION])
            earned, best = prospects(ways, link, *facts)
            own = chances(setting, slot, destination, link, by_this_link_only=True)
            assert earned == pytest.approx(earning(setting, message, destination, link, 0.0), abs=1e-8)
            assert best == pytest.approx(max(own, default=0.0), abs=1e-9)
            every = chances(setting, slot, destination, link)
            elsewhere = hope_elsewhere(ways, link, *facts, until_free)
            assert max(elsewhere, *own, 0.0) == pytest.approx(max(every, default=0.0), abs=1e-9)
            row = stop


def test_the_earliest_way_counts_waits_and_when_a_link_falls_free():
    ways = way_arrays({(0, 0): Way(wait_s=3.0), (1, 0): Way(), (2, 0): Way(s_per_kb_mean=0.05)})
    # 50 KB: in 8 s by the first, 5 by the second, 2.5 by the third
    assert earliest_way(ways, 0, 0, 50.0, np.array([0.0, 2.0, 9.0])) == 1
    assert earliest_way(ways, 0, 0, 50.0, np.array([0.0, 4.0, 9.0])) == 0
    assert earliest_way(ways, 0, 0, 50.0, np.array([0.0, 0.0, 0.0])) == 2


def test_a_better_way_without_hope_is_none_to_wait_for():
    _, rows = queue_arrays((Waiting(wanting=(Wanting(destination=0, delay_s_max=8.0),)),))
    ways = way_arrays({(0, 0): Way(wait_s=9.0), (1, 0): Way(s_per_kb_mean=0.15)})
    facts = (ways, 0, 1, rows, 0, 1, 50.0, 0.0, 0.0, 1.0)
    assert better_by(*facts, 0.1)
    assert not better_by(*facts, 0.8)


def test_a_crowded_way_is_left_for_a_longer_one_but_is_no_reason_to_give_up():
    message = Waiting(wanting=(Wanting(destination=0, delay_s_max=12.0),))
    short = Way(s_per_kb_mean=0.1, wait_s=20.0)
    both = Setting(queue=(message,), ways={(0, 0): short, (1, 0): Way(s_per_kb_mean=0.15)})
    alone = Setting(queue=(message,), ways={(0, 0): short})
    assert appraised(appraise_any_way, both, link=0).verdicts == {(0, 0): STAYS}
    assert appraised(appraise_any_way, both, link=1).verdicts == {(0, 0): GOES}
    assert appraised(appraise_any_way, alone, link=0).verdicts == {(0, 0): GOES}


def test_a_busy_better_link_is_waited_for_only_while_that_earns_more():
    message = Waiting(wanting=(Wanting(destination=0, delay_s_max=12.0),))
    ways = {
        (0, 0): Way(s_per_kb_mean=0.2, s_per_kb_sd=0.04),
        (1, 0): Way(s_per_kb_mean=0.1, s_per_kb_sd=0.02),
    }
    soon = Setting(queue=(message,), ways=ways, free_at_s=(0.0, 1.0, 0.0))
    late = Setting(queue=(message,), ways=ways, free_at_s=(0.0, 20.0, 0.0))
    assert appraised(appraise_any_way, soon, link=0).verdicts == {(0, 0): STAYS}
    assert appraised(appraise_any_way, late, link=0).verdicts == {(0, 0): GOES}


def test_in_a_crowd_a_link_takes_along_what_another_serves_a_little_better():
    message = Waiting(wanting=(Wanting(destination=0, delay_s_max=12.0),))
    ways = {(0, 0): Way(s_per_kb_mean=0.172), (1, 0): Way(s_per_kb_mean=0.168)}
    calm = Setting(queue=(message,), ways=ways, contention=0.0)
    crowd = Setting(queue=(message,), ways=ways, contention=1.0)
    assert earning(calm, message, 0, 0, 0.0) < earning(calm, message, 0, 1, 0.0)
    assert appraised(appraise_any_way, calm, link=0).verdicts == {(0, 0): STAYS}
    assert appraised(appraise_any_way, crowd, link=0).verdicts == {(0, 0): GOES}
