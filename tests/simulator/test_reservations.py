"""Does a simulated network act on guarantees: who is refused with what, and does the rest keep its share?

a publishes for f; two ways lead there, over b and over c. Links carry 60 KB/s, of which 54 may be promised.
"""

from __future__ import annotations

import pytest

from betimes.language.files.scenario_file import read_scenario
from betimes.model.topology import Scenario
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import SimulatedNetwork

NETWORK = """
name = "guaranteed"
duration = "60s"
processing = "0s"
""" + "".join(f'[[brokers]]\nname = "{name}"\n' for name in "abcf")
LINKS = "".join(
    f'[[links]]\nfrom = "{one}"\nto = "{other}"\nrate = "60KB/s"\n' for one, other in ("ab", "bf", "ac", "cf")
)
PUBLISHERS = """
[[publishers]]
name = "cars"
broker = "a"
rate = "9/s"
gaps = "constant"
size = "2KB"
attributes.kind = "car"
qos_profile = "bandwidth = 20KB/s"
[[publishers]]
name = "noise"
broker = "a"
rate = "120/s"
size = "2KB"
attributes.kind = "noise"
[[subscribers]]
name = "noise"
broker = "f"
filter = "kind = 'noise'"
max_delay = "500ms"
price = 50
"""


def network(*subscribers, strategy="late-binding", more=""):
    texts = [
        f'[[subscribers]]\nname = "{name}"\nbroker = "f"\nfilter = "kind = \'car\'"\n{rest}\n'
        for name, rest in subscribers
    ]
    scenario = read_scenario(NETWORK + LINKS + PUBLISHERS + "".join(texts) + more, "guaranteed.toml")
    assert isinstance(scenario, Scenario)
    return SimulatedNetwork(scenario, strategy_named(strategy), 3)


def shares(found):
    return {each.subscriber: each.on_time_share for each in found.run().subscribers}


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["fifo", "eb", "late-binding"])
def test_what_is_guaranteed_arrives_though_others_offer_twice_what_all_links_carry(strategy):
    bound = 'max_delay = "500ms"'
    plain = shares(network(("alice", bound), strategy=strategy))
    guaranteed = network(
        ("alice", f'{bound}\nqos = "bandwidth = any and latency < 500ms"'), strategy=strategy
    )
    (answer,) = guaranteed.guarantees
    assert (answer.subscriber, answer.is_accepted, answer.bytes_per_s) == ("alice", True, 20_000)
    assert 0.0 < answer.latency_s < 0.5
    found = shares(guaranteed)
    assert found["alice"] >= 0.99
    assert plain["alice"] < 0.9
    if strategy != "fifo":  # which is late for all
        assert found["noise"] > 0.2


@pytest.mark.long
def test_who_is_refused_is_told_what_would_fit_and_takes_part_without():
    found = network(
        ("first", 'qos = "bandwidth = 40KB/s"'),
        ("second", 'qos = "bandwidth = 30KB/s"'),
        ("too much", 'qos = "bandwidth = 60KB/s"'),
        ("too soon", 'qos = "latency < 1ms"'),
        ("without", ""),
    )
    assert [(each.subscriber, each.is_accepted, each.reason) for each in found.guarantees] == [
        ("first", True, ""),
        ("second", True, ""),
        ("too much", False, "no bandwidth"),
        ("too soon", False, "too slow"),
    ]
    assert (found.guarantees[2].bytes_per_s, found.guarantees[2].is_shared) == (54_000, False)
    outcome = found.run()
    assert outcome.guarantees == found.guarantees
    assert {each.subscriber for each in outcome.subscribers} >= {"too much", "without"}


def test_what_nobody_with_a_profile_publishes_is_not_refused_for_good():
    found = network(
        ("alice", ""),
        more='[[subscribers]]\nname = "n"\nbroker = "f"\nbandwidth = "5KB/s"\nfilter = "kind = \'noise\'"\n',
    )
    (answer,) = found.guarantees
    assert (answer.is_accepted, answer.is_definite, answer.reason) == (False, False, "nobody publishes this")


@pytest.mark.long
@pytest.mark.parametrize("lost", ['link = "a->b"', 'link = "a->c"', 'broker = "b"', 'broker = "c"'])
def test_what_came_over_a_link_that_is_lost_is_guaranteed_elsewhere(lost):
    found = network(
        ("alice", 'max_delay = "500ms"\nqos = "bandwidth = any"'),
        more=f'[[faults]]\n{lost}\nat = "20s"\nfor = "20s"\n',
    )
    assert shares(found)["alice"] >= 0.97


def test_what_comes_too_late_for_a_second_subscriber_is_moved_and_the_first_is_told_what_it_takes_now():
    # 150 ms over b, where the search looks first; 130 over c
    rates = {("a", "b"): 40, ("b", "f"): 80, ("a", "c"): 80, ("c", "f"): 50}
    links = "".join(
        f'[[links]]\nfrom = "{one}"\nto = "{other}"\nrate = "{rate}KB/s"\n'
        for (one, other), rate in rates.items()
    )
    asked = [("loose", "latency < 1s"), ("tight", "latency < 140ms"), ("hopeless", "latency < 120ms")]
    texts = [
        f'[[subscribers]]\nname = "{name}"\nbroker = "f"\nfilter = "kind = \'car\'"\n'
        f'qos = "bandwidth = any and {bound}"\n'
        for name, bound in asked
    ]

    def answers(count):
        scenario = read_scenario(NETWORK + links + PUBLISHERS + "".join(texts[:count]), "moved.toml")
        assert isinstance(scenario, Scenario)
        found = SimulatedNetwork(scenario, strategy_named("fifo"), 3)
        shares = found._brokers["a"].shares
        return [(each.is_accepted, round(each.latency_s, 3)) for each in found.guarantees], {
            name for name in "bc" if shares.due(name, 0.0)
        }

    assert answers(1) == ([(True, 0.15)], {"b"})
    assert answers(2) == ([(True, 0.13), (True, 0.13)], {"c"})
    assert answers(3) == ([(True, 0.13), (True, 0.13), (False, 0.13)], {"c"})


def test_a_publisher_that_has_no_event_in_the_run_advertises_all_the_same():
    rare = PUBLISHERS.replace('rate = "9/s"', 'rate = "0.000001/s"').replace('gaps = "constant"\n', "")
    asked = (
        '[[subscribers]]\nname = "alice"\nbroker = "f"\nfilter = "kind = \'car\'"\nqos = "bandwidth = any"\n'
    )
    scenario = read_scenario(NETWORK + LINKS + rare + asked, "rare.toml")
    assert isinstance(scenario, Scenario)
    (answer,) = SimulatedNetwork(scenario, strategy_named("fifo"), 3).guarantees
    assert (answer.is_accepted, answer.bytes_per_s) == (True, 20_000)


def two_publishers(*subscribers):
    """Return what is answered where buses, too, come from b."""
    buses = PUBLISHERS.partition('[[publishers]]\nname = "noise"')[0]
    buses = buses.replace('"cars"', '"buses"').replace('broker = "a"', 'broker = "b"')
    return network(*subscribers, more=buses).guarantees


def test_of_several_publishers_all_is_had_or_nothing_and_nobody_is_moved_for_who_is_refused():
    asked = [("first", 'qos = "bandwidth = any"'), ("greedy", 'qos = "bandwidth = 50KB/s"')]
    first, greedy = two_publishers(*asked)
    assert (first.is_accepted, first.bytes_per_s) == (True, 40_000)
    assert (greedy.is_accepted, greedy.reason) == (False, "no bandwidth")
    assert greedy.bytes_per_s
    told = ("told", f'qos = "bandwidth = {greedy.bytes_per_s}B/s"')
    *_, had = two_publishers(*asked, told)
    assert had.is_accepted
    assert two_publishers(asked[0], told)[0].latency_s == first.latency_s


def test_what_is_told_in_place_of_something_too_slow_can_be_had_of_all_publishers():
    (hasty,) = two_publishers(("hasty", 'qos = "bandwidth = any and latency < 1ms"'))
    assert (hasty.reason, hasty.is_definite) == ("too slow", True)
    told = hasty.why.removeprefix("too slow; the fastest way takes ")
    (had,) = two_publishers(("told", f'qos = "bandwidth = any and latency <= {told}"'))
    assert had.is_accepted
