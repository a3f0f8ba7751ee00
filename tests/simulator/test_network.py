"""Do the laws of any network hold: nothing lost unseen, nothing twice, nothing late, all repeatable?"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.small_worlds import Run, layered, line, meshes, run

from betimes.model.distributions import Uniform
from betimes.model.events import EventId, Value
from betimes.model.filters import Filter
from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import Delivered, Dropped, Published, Queued, Reason, Received, Sent, Subscribed
from betimes.model.topology import Fault, FaultKind, LayeredWorld, Link, Scenario, Tier
from betimes.scheduling.strategies import STRATEGIES, strategy_named
from betimes.simulator.network import PROGRESS_PARTS, SimulatedNetwork
from betimes.simulator.worlds import make_scenario, publications

strategies_drawn = st.sampled_from(sorted(STRATEGIES))
TIERS = (Tier(delay_s_max=10.0, price=3.0), Tier(delay_s_max=30.0, price=2.0))
NEARLY = 1e-6


def attributes_by_event(scenario: Scenario, seed: int) -> dict[EventId, dict[str, Value]]:
    """Return what was in each event: numbers are given in order of time, origin by origin."""
    times: dict[str, list[tuple[float, dict[str, Value]]]] = {}
    for published in publications(scenario, seed):
        publisher = published.publisher
        origin = publisher.access.source if publisher.access else publisher.broker
        times.setdefault(origin, []).extend(zip(published.time_s.tolist(), published.attributes, strict=True))
    return {
        EventId(origin, number + 1): attributes
        for origin, found in times.items()
        for number, (_, attributes) in enumerate(sorted(found, key=lambda pair: pair[0]))
    }


def missed_or_met(done: Run) -> tuple[Counter[tuple[str, int, str]], Counter[tuple[str, int, str]]]:
    """Return how many subscribers were served, and how many given up, by event and home."""
    met = Counter((each.origin, each.number, each.broker) for each in done.of(Delivered))
    missed: Counter[tuple[str, int, str]] = Counter()
    for each in done.of(Dropped):
        missed[each.origin, each.number, each.destination] += each.subscribers
    return met, missed


def check_conservation(done: Run, scenario: Scenario, seed: int) -> None:
    """What was wanted came in time or was dropped for a reason: in all, and by event and home."""
    outcome = done.outcome
    assert outcome.wanted == outcome.in_time + sum(outcome.drops.values())
    met, missed = missed_or_met(done)
    expected: Counter[tuple[str, int, str]] = Counter()
    for event, attributes in attributes_by_event(scenario, seed).items():
        for each in scenario.subscriptions:
            expected[event.origin, event.number, each.home] += each.filter.matches(attributes)
    assert met + missed == +expected


def check_deliveries(done: Run, scenario: Scenario, seed: int) -> None:
    """Nothing comes twice or late, or to those who did not want it; age is the time since publishing."""
    subscriptions: dict[str, Subscription] = {each.id: each for each in scenario.subscriptions}
    attributes = attributes_by_event(scenario, seed)
    published = {(each.origin, each.number): each for each in done.of(Published)}
    seen = Counter((each.origin, each.number, each.subscriber) for each in done.of(Delivered))
    assert not seen or max(seen.values()) == 1
    for each in done.of(Delivered):
        subscription, born = subscriptions[each.subscriber], published[each.origin, each.number]
        assert subscription.home == each.broker
        assert subscription.filter.matches(attributes[EventId(each.origin, each.number)])
        assert each.age_s <= each.delay_s_allowed
        assert each.delay_s_allowed == min(subscription.qos.delay_s_max, born.deadline_s)
        assert each.age_s == pytest.approx(each.time_s - born.time_s, abs=NEARLY)


def check_records(done: Run) -> None:
    """The records tell the same story as the outcome."""
    outcome, delivered = done.outcome, done.of(Delivered)
    assert len(done.of(Published)) == outcome.published
    assert sum(each.wanted for each in done.of(Published)) == outcome.wanted
    assert len(done.of(Received)) == outcome.messages
    assert len(delivered) == outcome.in_time
    assert sum(each.price for each in delivered) == pytest.approx(outcome.earning)
    assert sum(each.out_of_order for each in delivered) == outcome.out_of_order
    assert Counter(each.subscriber for each in delivered) == +Counter(
        {each.subscriber: each.in_time for each in outcome.subscribers}
    )
    dropped: Counter[str] = Counter()
    for each in done.of(Dropped):
        dropped[each.reason] += each.subscribers
    assert dropped == {reason.value: count for reason, count in outcome.drops.items()}
    if delivered:
        assert outcome.age_s_mean == pytest.approx(np.mean([each.age_s for each in delivered]))
    times_s = [each.time_s for each in done.records]
    assert times_s == sorted(times_s)


def check_links(done: Run) -> None:
    """A link serves one message at a time."""
    ends: dict[tuple[str, str], float] = {}
    for each in done.records:
        if isinstance(each, Sent):
            assert each.time_s >= ends.get((each.broker, each.neighbour), 0.0)
            ends[each.broker, each.neighbour] = math.inf
        elif isinstance(each, Received):
            ends[each.neighbour, each.broker] = each.time_s


@pytest.mark.long
@settings(max_examples=60)
@given(meshes(), strategies_drawn, st.integers(0, 1000))
def test_in_any_network_everything_wanted_comes_in_time_or_is_dropped_for_a_reason(scenario, strategy, seed):
    done = run(scenario, strategy, seed)
    check_conservation(done, scenario, seed)
    check_deliveries(done, scenario, seed)
    check_records(done)
    check_links(done)
    assert len(done.of(Sent)) == len(done.of(Received))
    assert Reason.BROKER_LOST not in done.outcome.drops


@pytest.mark.long
@settings(max_examples=80)
@given(meshes(faulty=True), strategies_drawn, st.integers(0, 1000), st.sampled_from([1, 100_000]))
def test_the_laws_hold_while_links_and_brokers_fail(scenario, strategy, seed, messages_max):
    done = run(scenario, strategy, seed, messages_max=messages_max)
    check_conservation(done, scenario, seed)
    check_deliveries(done, scenario, seed)
    check_records(done)
    assert len(done.of(Sent)) >= len(done.of(Received))


@pytest.mark.long
@settings(max_examples=20)
@given(meshes(faulty=True), strategies_drawn, st.sampled_from([3.0, 10.0]))
def test_the_laws_hold_while_links_are_measured(scenario, strategy, learn_every_s):
    done = run(scenario, strategy, 1, learn_every_s=learn_every_s)
    check_conservation(done, scenario, 1)
    check_deliveries(done, scenario, 1)
    check_records(done)


@pytest.mark.long
@settings(max_examples=40)
@given(meshes(), strategies_drawn)
def test_only_what_has_no_way_is_unreachable(scenario, strategy):
    done = run(scenario, strategy)
    onward = {(link.source, link.target) for link in scenario.links}
    onward |= {(each.access.source, each.access.target) for each in scenario.publishers if each.access}
    for each in done.of(Dropped):
        if each.reason == Reason.NO_ROUTE:
            reached, before = {each.broker}, set[str]()
            while reached != before:
                before, reached = reached, reached | {to for start, to in onward if start in reached}
            assert each.destination not in reached


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_the_same_seed_leaves_the_same_trace(strategy):
    scenario = make_scenario(layered(deadline_s=Uniform(5.0, 20.0)), 7)
    one, other = run(scenario, strategy, 7), run(scenario, strategy, 7)
    assert one.records == other.records
    assert one.outcome == other.outcome
    assert len(one.records) > 100


def test_different_seeds_leave_different_traces():
    scenario = make_scenario(layered(deadline_s=Uniform(5.0, 20.0)), 7)
    assert run(scenario, "eb", 1).records != run(scenario, "eb", 2).records


def test_recording_changes_nothing():
    scenario = make_scenario(layered(tiers=TIERS), 7)
    assert SimulatedNetwork(scenario, strategy_named("eb"), 7).run() == run(scenario, "eb", 7).outcome


@pytest.mark.long
def test_all_strategies_meet_the_same_events_and_the_same_luck():
    scenario = make_scenario(layered(deadline_s=Uniform(5.0, 20.0)), 7)
    runs = [run(scenario, strategy, 7) for strategy in sorted(STRATEGIES)]
    transfers: dict[tuple[str, str, str, int], float] = {}
    for done in runs:
        assert done.of(Published) == runs[0].of(Published)
        for each in done.of(Received):
            journey = each.neighbour, each.broker, each.origin, each.number
            assert transfers.setdefault(journey, each.transfer_s) == each.transfer_s


def test_one_link_under_fifo_is_the_queue_one_computes_by_hand():
    scenario = line(s_per_kb=0.06, duration_s=2000.0, rate_per_s=0.25, processing_s=0.002)
    (published,) = publications(scenario, 3)
    service_s, free_s, expected_s = 50.0 * 0.06, 0.0, []
    for time_s in published.time_s.tolist():
        free_s = max(time_s, free_s) + service_s
        expected_s.append(free_s + 0.002)
    done = run(scenario, "fifo", 3)
    assert [each.time_s for each in done.of(Delivered)] == pytest.approx(expected_s)
    assert [each.number for each in done.of(Delivered)] == list(range(1, len(expected_s) + 1))


def test_one_link_under_fifo_with_a_bound_drops_what_one_computes_by_hand():
    scenario = line(s_per_kb=0.08, duration_s=2000.0, rate_per_s=0.3, delay_s_max=9.0)
    (published,) = publications(scenario, 3)
    service_s, free_s = 50.0 * 0.08, 0.0
    in_time, late, never_sent = list[int](), list[int](), list[int]()
    for number, time_s in enumerate(published.time_s.tolist(), start=1):
        start_s = max(time_s, free_s)
        if start_s - time_s > 9.0:
            never_sent.append(number)
            continue
        free_s = start_s + service_s
        (in_time if free_s - time_s <= 9.0 else late).append(number)
    done = run(scenario, "fifo", 3)
    assert [each.number for each in done.of(Delivered)] == in_time
    assert [each.number for each in done.of(Dropped) if each.broker == "b"] == late
    assert [each.number for each in done.of(Dropped) if each.broker == "a"] == never_sent
    assert min(len(in_time), len(late), len(never_sent)) > 10


@pytest.mark.long
def test_the_mean_wait_of_a_steady_server_is_that_of_queueing_theory():
    """M/D/1 at load 0.5: the mean wait is load / (2 (1 - load)) service times (Pollaczek and Khinchine)."""
    scenario = line(s_per_kb=0.02, duration_s=25_000.0, rate_per_s=0.5)
    waits_s = [each.wait_s for each in run(scenario, "fifo", 1).of(Sent)]
    assert np.mean(waits_s) == pytest.approx(0.5 / (2 * 0.5) * 1.0, rel=0.1)


@pytest.mark.parametrize("brokers", ["ab", "abcd"])
def test_fifo_keeps_the_order_within_a_flow_on_a_single_path(brokers):
    done = run(line(brokers=brokers, sd=0.03, delay_s_max=30.0), "fifo", 5)
    numbers = [each.number for each in done.of(Delivered)]
    assert numbers == sorted(numbers)
    assert done.outcome.out_of_order == 0
    assert len(numbers) > 20


def test_what_overtakes_is_reported():
    scenario = make_scenario(layered(deadline_s=Uniform(5.0, 60.0), duration_s=300.0, rate_per_s=0.5), 1)
    done = run(scenario, "pc", 1)
    last: dict[tuple[str, str], int] = {}
    for each in done.of(Delivered):
        flow = each.subscriber, each.origin
        assert each.out_of_order == (last.get(flow, 0) > each.number)
        last[flow] = max(last.get(flow, 0), each.number)
    assert done.outcome.out_of_order > 0


def test_a_wait_is_the_time_between_queueing_and_sending():
    done = run(line(), "fifo", 2)
    queued = {each.number: each for each in done.of(Queued)}
    for each in done.of(Sent):
        assert each.wait_s == pytest.approx(each.time_s - queued[each.number].time_s, abs=NEARLY)
        assert each.age_s == pytest.approx(queued[each.number].age_s + each.wait_s, abs=NEARLY)


def diamond(*faults: Fault) -> Scenario:
    """Return a world with two ways from a to d: by b, which is shorter, and by c."""
    links = tuple(
        Link(source=ends[0], target=ends[1], s_per_kb_mean=mean)
        for ends, mean in (("ab", 0.01), ("bd", 0.01), ("ac", 0.02), ("cd", 0.02))
    )
    world = line(brokers="ad", rate_per_s=0.5)
    return replace(world, brokers=tuple("abcd"), links=links, faults=faults)


def fault(kind: FaultKind, name: str, at_s: float, lasts_s: float = math.inf) -> Fault:
    return Fault(kind=kind, name=name, at_s=at_s, lasts_s=lasts_s)


@pytest.mark.parametrize("strategy", ["fifo", "eb", "late-binding"])
@pytest.mark.parametrize("lost", ["a->b", "b->d"])
def test_messages_go_round_a_link_that_is_away_and_come_back_to_it(strategy, lost):
    done = run(diamond(fault(FaultKind.LINK, lost, 100.0, 100.0)), strategy)
    assert done.outcome.in_time == done.outcome.wanted > 100
    source, target = lost.split("->")
    by_link = [each.time_s for each in done.of(Received) if (each.neighbour, each.broker) == (source, target)]
    assert not [time_s for time_s in by_link if 100.0 < time_s < 200.0]
    assert min(by_link) < 100.0
    assert max(by_link) > 200.0
    assert [each for each in done.of(Received) if each.broker == "c" and 100.0 < each.time_s < 200.0]


def test_a_broker_that_goes_away_loses_what_it_held_and_nothing_else():
    done = run(diamond(fault(FaultKind.BROKER, "b", 100.0, 50.0)), "fifo")
    lost = done.of(Dropped)
    assert {(each.broker, each.reason) for each in lost} <= {("b", Reason.BROKER_LOST)}
    assert len(lost) <= 2
    assert done.outcome.in_time == done.outcome.wanted - len(lost)


def test_what_is_published_at_a_broker_that_is_away_is_lost():
    done = run(line(faults=(fault(FaultKind.BROKER, "a", 100.0, 100.0),)), "fifo")
    away = [each.number for each in done.of(Published) if 100.0 < each.time_s < 200.0]
    lost = [each.number for each in done.of(Dropped)]
    assert set(away) <= set(lost)
    assert {each.reason for each in done.of(Dropped)} == {Reason.BROKER_LOST}
    numbers = [each.number for each in done.of(Published)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_what_nobody_wanted_is_not_lost_with_its_broker():
    away = (fault(FaultKind.BROKER, "a", 0.0),)
    nothing = Subscription(id="s", home="b", filter=Filter((), "FALSE"))
    done = run(replace(line(faults=away), subscriptions=(nothing,)), "fifo")
    assert done.outcome.published > 10
    assert (done.of(Dropped), done.outcome.drops) == ([], {})


def test_what_has_no_way_left_is_unreachable():
    done = run(line(faults=(fault(FaultKind.LINK, "a->b", 100.0),)), "fifo")
    assert set(done.outcome.drops) == {Reason.NO_ROUTE}
    assert done.outcome.in_time > 0


def test_what_waits_for_a_link_to_come_back_goes_then():
    done = run(line(faults=(fault(FaultKind.LINK, "a->b", 100.0, 50.0),)), "fifo")
    assert done.outcome.in_time == done.outcome.wanted


def test_overlapping_faults_of_one_link_end_with_the_last():
    faults = (fault(FaultKind.LINK, "a->b", 50.0, 100.0), fault(FaultKind.LINK, "a->b", 100.0, 150.0))
    done = run(line(faults=faults), "fifo")
    sent_s = [each.time_s for each in done.of(Sent)]
    assert not [time_s for time_s in sent_s if 50.0 < time_s < 250.0]
    assert done.outcome.in_time == done.outcome.wanted


def test_a_full_broker_drops_what_it_cannot_keep():
    done = run(line(s_per_kb=0.2), "fifo", messages_max=3)
    assert done.outcome.drops[Reason.QUEUE_FULL] > 10
    assert max(each.queue_length for each in done.of(Queued)) == 3


def test_progress_is_told_and_changes_nothing():
    scenario = make_scenario(layered(), 1)
    told: list[tuple[int, int]] = []
    outcome = SimulatedNetwork(scenario, strategy_named("fifo"), 1).run(
        lambda done, total: told.append((done, total))
    )
    assert outcome == SimulatedNetwork(scenario, strategy_named("fifo"), 1).run()
    assert told == [(part, PROGRESS_PARTS) for part in range(1, PROGRESS_PARTS + 1)]


@pytest.mark.long
def test_links_that_are_measured_are_used_as_they_are():
    """The configured ways are equal; the estimates of their speeds differ by chance, and both are used."""
    ends = (("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"))
    links = tuple(Link(source=s, target=t, s_per_kb_mean=0.02, s_per_kb_sd=0.006) for s, t in ends)
    scenario = replace(diamond(), links=links, duration_s=600.0)
    fixed = {each.broker for each in run(scenario, "fifo").of(Received)}
    learnt = {each.broker for each in run(scenario, "fifo", learn_every_s=20.0).of(Received)}
    assert len(fixed) == 2
    assert learnt == {"b", "c", "d"}


def test_a_network_without_publishers_has_nothing_to_do():
    done = run(replace(line(), publishers=()), "eb")
    assert {type(each) for each in done.records} == {Subscribed}
    assert (done.outcome.wanted, done.outcome.delivery_rate) == (0, 1.0)


@pytest.mark.long
def test_under_congestion_the_papers_order_holds():
    """EB before FIFO before RL (000, fig. 6), and late binding before them all, on average over seeds."""
    world = LayeredWorld(
        duration_s=400.0,
        link_s_per_kb=Uniform(0.050, 0.100),
        attribute_values=Uniform(0.0, 10.0),
        deadline_s=Uniform(10.0, 30.0),
    )
    rates = {
        name: np.mean(
            [
                SimulatedNetwork(make_scenario(world, seed), strategy_named(name), seed).run().delivery_rate
                for seed in (1, 2)
            ]
        )
        for name in ("rl", "fifo", "eb", "late-binding")
    }
    for worse, better in pairwise(rates.values()):
        assert worse < better
