"""Does reserved traffic keep its share while others drown the link, and do others use what is idle?

Two publishers at broker a, subscribers at c, over b: 60 KB/s links; the reserved flow has 20 KB/s of them.
"""

from __future__ import annotations

import pytest

from betimes.language.files.scenario_file import read_scenario
from betimes.model.telemetry import Reason
from betimes.model.topology import Scenario
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import SimulatedNetwork

SCENARIO = """
name = "reserved"
duration = "120s"
processing = "0s"

[[brokers]]
name = "a"
[[brokers]]
name = "b"
[[brokers]]
name = "c"

[[links]]
from = "a"
to = "b"
rate = "60KB/s"
[[links]]
from = "b"
to = "c"
rate = "60KB/s"

[[publishers]]
name = "reserved"
broker = "a"
rate = "{reserved}/s"
gaps = "constant"
size = "2KB"
attributes.flow = 1
[[publishers]]
name = "others"
broker = "a"
rate = "{others}/s"
size = "2KB"
attributes.flow = 2

[[subscribers]]
name = "wants reserved"
broker = "c"
filter = "flow = 1"
max_delay = "500ms"
[[subscribers]]
name = "wants others"
broker = "c"
filter = "flow = 2"
max_delay = "{patience}"
price = 50
"""
PROMISES = {"a->b": {"reserved": 20.0}, "b->c": {"reserved": 20.0}}
STRATEGIES = ("fifo", "eb", "late-binding")


def run(strategy, *, reserved=9, others=90, patience="500ms", promises=None):
    """Run it and return who got how many in time."""
    text = SCENARIO.format(reserved=reserved, others=others, patience=patience)
    scenario = read_scenario(text, "reserved.toml")
    assert isinstance(scenario, Scenario)
    network = SimulatedNetwork(scenario, strategy_named(strategy), 3, promises=promises)
    delivered = {"wants reserved": 0, "wants others": 0}
    deliver = network._tally.deliver

    def count(effect):
        for each in effect.subscriptions:
            delivered[each.id] += 1
        deliver(effect)

    network._tally.deliver = count  # type: ignore[method-assign]
    outcome = network.run()
    assert Reason.QUEUE_FULL not in outcome.drops
    return delivered, outcome


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reserved_traffic_arrives_though_others_offer_three_times_the_link(strategy):
    published = 9 * 120
    drowned, _ = run(strategy)
    kept, _ = run(strategy, promises=PROMISES)
    assert kept["wants reserved"] >= 0.99 * published
    assert drowned["wants reserved"] < 0.9 * published


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["eb", "late-binding"])  # first come, first served is late for all
def test_others_use_what_is_left_and_what_is_idle(strategy):
    # 60 KB/s carry 30 messages a second; 9 of them are reserved.
    kept, _ = run(strategy, promises=PROMISES)
    assert kept["wants others"] >= 0.9 * (30 - 9) * 120
    idle, _ = run(strategy, reserved=0.1, promises=PROMISES)
    assert idle["wants others"] >= 0.9 * 29 * 120


@pytest.mark.long
def test_a_flow_that_sends_more_than_its_share_takes_no_more_from_others():
    # 30 a second fit, 10 of them are reserved; who pays 50 times as much gets the rest.
    greedy, _ = run("eb", reserved=60, others=40, promises=PROMISES)
    assert greedy["wants others"] >= 0.9 * 20 * 120
    assert 0.9 * 10 * 120 <= greedy["wants reserved"] <= 1.1 * 10 * 120


@pytest.mark.long
def test_without_promises_nothing_changes():
    plain, first = run("late-binding")
    empty, second = run("late-binding", promises={})
    assert plain == empty
    assert first == second
