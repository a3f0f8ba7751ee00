"""Do the laws hold in a thousand networks in which links and brokers fail, alone and together?

A schedule follows from its number alone, so that one that fails can be had again:
`pytest "tests/simulator/test_network_under_faults.py::test_the_laws_hold_in_every_schedule[417]"`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.simulator.fault_schedules import STRATEGY_NAMES, Schedule, schedule
from tests.simulator.small_worlds import Run, run
from tests.simulator.test_network import check_conservation, check_deliveries, check_records

from betimes.model.telemetry import Delivered, Reason, Received, Sent
from betimes.model.topology import FaultKind

SCHEDULES = 1000

pytestmark = pytest.mark.figure


def run_schedule(drawn: Schedule) -> Run:
    options: dict[str, float | int] = {"messages_max": drawn.messages_max}
    if drawn.learn_every_s is not None:
        options["learn_every_s"] = drawn.learn_every_s
    return run(drawn.scenario, drawn.strategy, drawn.seed, **options)


def check_silence(done: Run, drawn: Schedule) -> None:
    """What is away neither sends nor receives nor delivers."""
    links = {link.name: (link.source, link.target) for link in drawn.scenario.links}
    access = [each.access for each in drawn.scenario.publishers if each.access is not None]
    links |= {link.name: (link.source, link.target) for link in access}
    for fault in drawn.scenario.faults:
        for each in done.records:
            if not fault.at_s < each.time_s < fault.at_s + fault.lasts_s:
                continue
            if isinstance(each, Delivered):
                assert fault.kind is FaultKind.LINK or fault.name != each.broker, (fault, each)
            elif isinstance(each, Sent | Received):
                ends = (each.broker, each.neighbour)
                ends = ends if isinstance(each, Sent) else ends[::-1]
                lost = {links[fault.name]} if fault.kind is FaultKind.LINK else set()
                assert ends not in lost, (fault, each)
                assert fault.kind is FaultKind.LINK or fault.name not in ends, (fault, each)


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_the_laws_hold_in_every_schedule(seed):
    drawn = schedule(seed)
    done = run_schedule(drawn)
    check_conservation(done, drawn.scenario, seed)
    check_deliveries(done, drawn.scenario, seed)
    check_records(done)
    check_silence(done, drawn)


@pytest.mark.parametrize("seed", range(0, SCHEDULES, 50))
def test_a_schedule_happens_again_as_it_happened(seed):
    one, other = run_schedule(schedule(seed)), run_schedule(schedule(seed))
    assert one.records == other.records


def test_the_schedules_are_worth_their_time():
    """They meet every strategy and every reason to drop, with much delivered and much sent in vain."""
    drops: Counter[Reason] = Counter()
    strategies, delivered, in_vain = set(), 0, 0
    for seed in range(0, SCHEDULES, 10):
        drawn = schedule(seed)
        done = run_schedule(drawn)
        strategies.add(drawn.strategy)
        drops.update(done.outcome.drops)
        delivered += len(done.of(Delivered))
        in_vain += len(done.of(Sent)) - len(done.of(Received))
    assert strategies == set(STRATEGY_NAMES)
    reasons = {Reason.EXPIRED, Reason.HOPELESS, Reason.QUEUE_FULL, Reason.NO_ROUTE, Reason.BROKER_LOST}
    assert set(drops) == reasons
    assert min(drops.values()) > 20
    assert delivered > 1000
    assert in_vain > 20
