"""Do metrics, read again and again, become the shares and rates that they tell of?"""

from __future__ import annotations

import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.observe.prometheus import exposition
from betimes.broker.observe.statistics import ObservedParts, gathered
from betimes.model.errors import BetimesError
from betimes.reporting.dashboard.broker_watch import (
    HISTORY_MAX,
    BrokerFacts,
    BrokerWatch,
    LinkFacts,
    read_metrics,
)


def facts(name: str = "a", uptime_s: float = 1.0, **told: object) -> BrokerFacts:
    return BrokerFacts(name=name, uptime_s=uptime_s, **told)  # type: ignore[arg-type]


def test_a_broker_s_own_metrics_are_understood():
    hub = new_hub()
    client = Client(hub, "c")
    client.subscribe("a", properties={"price": "4"})
    for _ in range(3):
        client.publish("a")
    client.publish("$no")  # refused, which is nobody's loss
    found = read_metrics(exposition(gathered(ObservedParts(hub=hub), 7.0), 0.0))
    assert (found.name, found.uptime_s) == (hub.name, 7.0)
    assert (found.received, found.sent, found.earned) == (3.0, 3.0, 12.0)
    assert sum(found.lost.values()) == 0.0


@pytest.mark.parametrize("text", ["", "<html>", "up 1\n", "betimes_uptime_seconds 3\n", "a{b 1", "x{} y\n"])
def test_what_is_no_broker_s_is_refused(text):
    with pytest.raises(BetimesError, match="not metrics"):
        read_metrics(text)


def test_rates_are_of_the_last_seconds_and_shares_of_what_was_wanted():
    watch = BrokerWatch()
    watch.heard("m1", facts(sent=100.0, earned=200.0, lost={"expired": 50.0}), 0.0)
    assert watch.note_moment(0.0).on_time_share is None, "nothing is known yet of rates"
    watch.heard("m1", facts(uptime_s=2.0, sent=130.0, earned=260.0, lost={"expired": 60.0}), 2.0)
    moment = watch.note_moment(2.0)
    assert (moment.sent, moment.lost, moment.earned) == (130.0, 60.0, 260.0)
    assert (moment.sent_per_s, moment.lost_per_s, moment.earned_per_s) == (15.0, 5.0, 30.0)
    assert moment.on_time_share == 0.75
    for second in range(3, 20):
        watch.heard(
            "m1",
            facts(uptime_s=float(second), sent=130.0, earned=260.0, lost={"expired": 60.0}),
            float(second),
        )
    assert watch.note_moment(20.0).sent_per_s == 0.0, "what was long ago counts no more"


def test_a_broker_that_began_anew_does_not_count_backwards():
    watch = BrokerWatch()
    watch.heard("m1", facts(uptime_s=100.0, sent=1000.0), 0.0)
    watch.heard("m1", facts(uptime_s=1.0, sent=5.0), 2.0)
    assert watch.note_moment(2.0).sent_per_s == 0.0


def test_a_silent_broker_is_named_and_its_numbers_are_gone():
    watch = BrokerWatch()
    watch.heard("m1", facts(sent=10.0), 0.0)
    watch.heard("m2", facts("b", sent=5.0), 0.0)
    watch.not_heard("m1", "connection refused", 1.0)
    assert watch.note_moment(1.0).sent == 15.0, "one answer that is missed says nothing"
    assert watch.silent == {}
    watch.heard("m2", facts("b", sent=5.0), 6.0)
    watch.not_heard("m1", "connection refused", 6.0)
    watch.not_heard("m3", "no such host", 6.0)
    assert watch.note_moment(6.0).sent == 5.0
    assert watch.silent == {"m1": "a answered before, connection refused", "m3": "no such host"}
    watch.heard("m1", facts(sent=11.0), 7.0)
    watch.heard("m3", facts("c"), 7.0)
    assert watch.silent == {}


def test_a_link_s_load_is_the_part_of_the_time_that_it_is_in_use():
    watch = BrokerWatch()
    before = LinkFacts(s_per_kb=0.02, sent_kb=100.0)
    after = LinkFacts(s_per_kb=0.02, sent_kb=150.0)
    watch.heard("m1", facts(links={"b": before}), 0.0)
    assert watch.links()[0].load == 0.0
    watch.heard("m1", facts(uptime_s=2.0, links={"b": after, "c": LinkFacts()}), 2.0)
    to_b, to_c = watch.links()
    assert (to_b.source, to_b.target, to_b.load) == ("a", "b", 0.5)
    assert (to_c.target, to_c.load) == ("c", 0.0)


def test_losses_of_all_brokers_are_added_up_by_reason():
    watch = BrokerWatch()
    watch.heard("m1", facts(lost={"expired": 2.0, "hopeless": 0.0}), 0.0)
    watch.heard("m2", facts("b", lost={"expired": 3.0}), 0.0)
    assert watch.lost() == {"expired": 5.0}


def test_history_has_a_bound():
    watch = BrokerWatch()
    for second in range(HISTORY_MAX + 10):
        watch.note_moment(float(second))
    assert len(watch.history) == HISTORY_MAX
