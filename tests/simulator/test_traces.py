"""Is what was published played again, at about the same times, and changed as one asks?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from betimes.language.filters.parse import parse_filter
from betimes.model.errors import SettingError
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.topology import Link, Scenario
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.traces import Trace, Twin, play, spreads

EB, FIFO = strategy_named("eb"), strategy_named("fifo")
COUNT = 200


def twin(s_per_kb: float = 0.02, copies: int = 1) -> Twin:
    wanted = Subscription(
        id="s", home="b", filter=parse_filter("x < 5"), qos=QoS(delay_s_max=0.5, price=2.0), pattern="t/+"
    )
    scenario = Scenario(
        name="played",
        duration_s=20.0,
        processing_s=0.0,
        brokers=("a", "b"),
        links=(Link(source="a", target="b", s_per_kb_mean=s_per_kb),),
        publishers=(),
        subscriptions=(wanted, replace(wanted, id="other", pattern="u")),
    )
    trace = Trace(
        publisher="p",
        broker="a",
        time_s=np.linspace(0.0, 20.0, COUNT),
        size_kb=np.ones(COUNT),
        deadline_s=np.full(COUNT, np.inf),
        copies=np.full(COUNT, copies),
        topics=tuple("t/1" if number % 2 else "u" for number in range(COUNT)),
        attributes=tuple({"x": float(number % 10)} for number in range(COUNT)),
    )
    return Twin(scenario=scenario, traces=(trace,))


def wanted_and_got(outcome):
    return {each.subscriber: (each.wanted, each.in_time) for each in outcome.subscribers}


def test_every_event_is_played_once_to_those_who_want_its_topic_and_content():
    outcome = play(twin(), EB, 1)
    assert outcome.published == COUNT
    assert wanted_and_got(outcome) == {"s": (40, 40), "other": (60, 60)}


def test_an_event_that_stands_for_many_is_many():
    assert twin(copies=3).events == 3 * COUNT
    outcome = play(twin(copies=3), EB, 1)
    assert outcome.published == 3 * COUNT
    assert wanted_and_got(outcome)["s"] == (120, 120)


def test_a_seed_is_luck_and_the_same_seed_the_same_luck():
    busy = twin(s_per_kb=0.19)
    one, same, other = play(busy, FIFO, 1), play(busy, FIFO, 1), play(busy, FIFO, 2)
    assert one == same
    assert one.age_s_mean != other.age_s_mean
    assert one.wanted == other.wanted


def test_twice_as_fast_is_half_as_long_and_harder():
    busy = twin(s_per_kb=0.15)
    calm, hasty = play(busy, EB, 1), play(busy.faster(3.0), EB, 1)
    assert busy.faster(3.0).scenario.duration_s == pytest.approx(20.0 / 3.0)
    assert hasty.wanted == calm.wanted
    assert hasty.delivery_rate < calm.delivery_rate


def test_a_link_that_is_gone_carries_nothing():
    gone = twin().without_link("b->a")
    assert gone.scenario.links == ()
    assert play(gone, EB, 1).in_time == 0
    with pytest.raises(SettingError, match="no such link"):
        twin().without_link("a->c")


def test_a_long_list_of_links_says_that_it_is_cut():
    (link,) = twin().scenario.links
    many = tuple(replace(link, source=f"s{number}", target="hub") for number in range(20))
    wide = replace(twin(), scenario=replace(twin().scenario, links=many))
    with pytest.raises(SettingError, match="and 8 more") as caught:
        wide.without_link("x->y")
    assert "known links: s0->hub" in str(caught.value)
    with pytest.raises(SettingError, match="did you mean s1->hub"):
        wide.without_link("s1>hub")


def test_one_more_subscriber_is_served_too():
    ann = Subscription(id="ann", home="a", pattern="#")
    assert wanted_and_got(play(twin().with_subscription(ann), EB, 1))["ann"] == (COUNT, COUNT)
    with pytest.raises(SettingError, match="one of this name"):
        twin().with_subscription(replace(ann, id="s"))
    with pytest.raises(SettingError, match="no such broker"):
        twin().with_subscription(replace(ann, home="nowhere"))


def test_spreads_are_means_and_deviations_over_runs():
    runs = [play(twin(s_per_kb=0.19), FIFO, seed) for seed in (1, 2, 3)]
    found = spreads(runs)
    assert found.on_time_share[0] == pytest.approx(sum(run.delivery_rate for run in runs) / 3)
    assert found.on_time_share[1] == pytest.approx(np.std([run.delivery_rate for run in runs], ddof=1))
    assert set(found.subscribers) == {"s", "other"}
    assert spreads(runs[:1]).earning == (runs[0].earning, None)


def test_more_than_a_run_can_take_is_refused():
    with pytest.raises(SettingError, match="at most"):
        play(twin(copies=10_000_000), EB, 1)
