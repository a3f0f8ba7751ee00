"""Does a seed make the paper's world of a recipe (000, section 6.1), and what is published in it?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.simulator.small_worlds import layered, line

from betimes.model.distributions import Constant, Uniform
from betimes.model.errors import SettingError
from betimes.model.filters import Interval
from betimes.model.topology import Fault, FaultKind, LayeredWorld, Publisher, Scenario, Tier
from betimes.simulator.worlds import check_amount, descriptions, make_scenario, publications

PAPER = LayeredWorld(
    link_s_per_kb=Uniform(0.050, 0.100),
    attribute_values=Uniform(0.0, 10.0),
    deadline_s=Uniform(10.0, 30.0),
)
TIERS = (
    Tier(delay_s_max=10.0, price=3.0),
    Tier(delay_s_max=30.0, price=2.0),
    Tier(delay_s_max=60.0, price=1.0),
)


def layer(name: str) -> int:
    return int(name[1:].split(".", maxsplit=1)[0])


@pytest.fixture(scope="module")
def paper() -> Scenario:
    return make_scenario(PAPER, 3)


def test_the_papers_brokers_stand_in_layers_of_4_4_8_and_16(paper):
    assert Counter(map(layer, paper.brokers)) == {1: 4, 2: 4, 3: 8, 4: 16}
    assert len(set(paper.brokers)) == 32


def test_layer_2_is_linked_to_all_of_layer_1_and_later_layers_to_two_above(paper):
    upstream: dict[str, set[str]] = {}
    for link in paper.links:
        assert layer(link.target) == layer(link.source) + 1
        upstream.setdefault(link.target, set()).add(link.source)
    assert {layer(name): len(found) for name, found in upstream.items()} == {2: 4, 3: 2, 4: 2}
    assert set(upstream) == {name for name in paper.brokers if layer(name) > 1}
    assert len(paper.links) == 4 * 4 + 8 * 2 + 16 * 2


def test_link_speeds_are_the_papers(paper):
    every = [*paper.links, *(each.access for each in paper.publishers)]
    assert all(0.050 <= link.s_per_kb_mean <= 0.100 for link in every)
    assert {link.s_per_kb_sd for link in every} == {0.020}
    assert len({link.s_per_kb_mean for link in every}) == len(every)


def test_every_broker_of_layer_1_has_a_publisher_behind_a_link(paper):
    assert [each.broker for each in paper.publishers] == [name for name in paper.brokers if layer(name) == 1]
    for each in paper.publishers:
        assert each.access is not None
        assert (each.access.source, each.access.target) == (each.name, each.broker)


def test_ten_subscribers_sit_at_each_broker_of_layer_4(paper):
    homes = Counter(each.home for each in paper.subscriptions)
    assert homes == dict.fromkeys([name for name in paper.brokers if layer(name) == 4], 10)
    assert len({each.id for each in paper.subscriptions}) == 160


def test_filters_are_upper_bounds_on_both_attributes(paper):
    for each in paper.subscriptions:
        ((first, below_first), (second, below_second)) = each.filter.boxes[0].constraints
        assert (first, second) == ("A1", "A2")
        for interval in (below_first, below_second):
            assert isinstance(interval, Interval)
            assert 0.0 <= interval.high <= 10.0
            assert not interval.high_inside
        x1 = below_first.high
        assert each.filter.matches({"A1": np.nextafter(x1, 0.0), "A2": 0.0}) == (below_second.high > 0)
        assert not each.filter.matches({"A1": x1, "A2": 0.0})


@pytest.mark.long
def test_a_quarter_of_the_subscribers_want_a_message_on_average():
    wanted = []
    for seed in range(6):
        scenario = make_scenario(replace(PAPER, duration_s=600.0), seed)
        for published in publications(scenario, seed):
            for attributes in published.attributes:
                wanted.append(sum(each.filter.matches(attributes) for each in scenario.subscriptions))
    assert np.mean(wanted) / 160 == pytest.approx(0.25, abs=0.03)


def test_without_tiers_subscribers_state_no_bound_and_with_tiers_one_of_them(paper):
    assert {each.qos.delay_s_max for each in paper.subscriptions} == {float("inf")}
    tiered = make_scenario(replace(PAPER, deadline_s=None, tiers=TIERS), 3)
    found = Counter((each.qos.delay_s_max, each.qos.price) for each in tiered.subscriptions)
    assert set(found) == {(10.0, 3.0), (30.0, 2.0), (60.0, 1.0)}
    assert min(found.values()) > 25


@pytest.mark.long
def test_tiers_are_drawn_by_weight():
    rare = (replace(TIERS[0], weight=0.0), TIERS[1])
    tiered = make_scenario(replace(PAPER, tiers=rare), 3)
    assert {each.qos.price for each in tiered.subscriptions} == {2.0}


def test_the_same_seed_makes_the_same_world_and_another_another():
    assert make_scenario(PAPER, 5) == make_scenario(PAPER, 5)
    assert make_scenario(PAPER, 5).links != make_scenario(PAPER, 6).links
    assert make_scenario(PAPER, 5).subscriptions != make_scenario(PAPER, 6).subscriptions


def test_another_rate_or_scenario_leaves_the_network_as_it_is():
    other = make_scenario(replace(PAPER, publisher_rate_per_s=0.1, deadline_s=None, tiers=TIERS), 5)
    assert make_scenario(PAPER, 5).links == other.links
    assert [each.filter for each in make_scenario(PAPER, 5).subscriptions] == [
        each.filter for each in other.subscriptions
    ]


def test_faults_are_taken_over():
    fault = Fault(kind=FaultKind.BROKER, name="b1.1", at_s=1.0, lasts_s=2.0)
    assert make_scenario(layered(faults=(fault,)), 1).faults == (fault,)


def test_a_world_of_one_layer_has_no_links():
    alone = make_scenario(replace(layered(), layers=(3,)), 1)
    assert alone.links == ()
    assert len(alone.subscriptions) == 9


def with_gaps(gaps: str, rate_per_s: float = 0.5) -> Scenario:
    publisher = Publisher(
        name="p", broker="a", rate_per_s=rate_per_s, gaps=gaps, attributes={"A": Uniform(0.0, 10.0)}
    )
    return replace(line(duration_s=20_000.0), publishers=(publisher,))


@pytest.mark.parametrize(
    ("gaps", "variation"), [("exponential", 1.0), ("uniform", np.sqrt(1 / 3)), ("constant", 0.0)]
)
def test_gaps_have_the_mean_of_the_rate_and_the_spread_of_their_kind(gaps, variation):
    (published,) = publications(with_gaps(gaps), 1)
    found = np.diff(published.time_s)
    assert (found >= 0).all()
    assert found.mean() == pytest.approx(2.0, rel=0.03)
    assert found.std() / found.mean() == pytest.approx(variation, abs=0.06)
    if gaps == "uniform":
        assert found.max() <= 4.0


def test_a_steady_publisher_starts_at_a_phase_of_its_own():
    firsts = {float(next(publications(with_gaps("constant"), seed)).time_s[0]) for seed in range(5)}
    assert len(firsts) == 5


def test_nothing_is_published_after_the_end_and_nothing_is_missing_before():
    (published,) = publications(with_gaps("exponential"), 1)
    assert published.time_s.max() <= 20_000.0
    assert len(published.time_s) == pytest.approx(10_000, rel=0.05)
    count = len(published.time_s)
    assert len(published.size_kb) == len(published.deadline_s) == len(published.attributes) == count


def test_a_longer_run_begins_like_a_shorter_one():
    (short,) = publications(replace(with_gaps("uniform"), duration_s=100.0), 1)
    (long,) = publications(replace(with_gaps("uniform"), duration_s=200.0), 1)
    count = len(short.time_s)
    np.testing.assert_array_equal(long.time_s[:count], short.time_s)


def test_sizes_bounds_and_attributes_are_those_of_the_publisher(paper):
    for published in publications(replace(paper, duration_s=600.0), 3):
        assert set(published.size_kb.tolist()) == {50.0}
        assert ((published.deadline_s >= 10.0) & (published.deadline_s <= 30.0)).all()
        assert all(set(attributes) == {"A1", "A2"} for attributes in published.attributes)


def test_without_a_bound_or_attributes_events_have_none():
    (published,) = publications(line(), 1)
    assert np.isinf(published.deadline_s).all()
    assert set(map(len, published.attributes)) == {0}
    assert published.publisher.size_kb == Constant(50.0)


def test_publishers_publish_apart_from_each_other(paper):
    first, second, *_ = publications(replace(paper, duration_s=600.0), 3)
    assert first.time_s[:5].tolist() != second.time_s[:5].tolist()


@pytest.mark.parametrize(("kind", "name"), [(FaultKind.BROKER, "b9.9"), (FaultKind.LINK, "b1.1->b4.1")])
def test_a_fault_of_something_that_is_not_there_is_refused_with_names_that_are(kind, name):
    fault = Fault(kind=kind, name=name, at_s=1.0, lasts_s=1.0)
    with pytest.raises(SettingError, match=r"called, for example, b1\.1"):
        make_scenario(replace(PAPER, faults=(fault,)), 3)


@pytest.mark.parametrize("change", [{"publisher_rate_per_s": 1e9}, {"duration_s": 1e300}])
def test_more_events_than_one_run_can_take_are_refused(change):
    too_much = replace(PAPER, **change)
    with pytest.raises(SettingError, match="at most 10,000,000"):
        check_amount(too_much)
    with pytest.raises(SettingError, match="at most 10,000,000"):
        next(publications(make_scenario(too_much, 1), 1))
    check_amount(PAPER)


def test_what_events_say_does_not_depend_on_how_many_there_are():
    published = max(publications(with_gaps("exponential"), 1), key=lambda each: len(each.attributes))
    count = len(published.attributes)
    assert count > 10
    assert descriptions(published.publisher, 1, count + 5)[:count] == published.attributes
    assert len(descriptions(published.publisher, 1, 3)) == 3
