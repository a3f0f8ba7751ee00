"""Is a twin like the network whose tables it was made from?"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from tests.pipeline.report_tables import NASTY, PASSAGE, make_empty_tables, make_tables, put_rows

from betimes.language.filters.parse import parse_filter
from betimes.model.distributions import Constant, Uniform
from betimes.model.statistics import subscriber_of
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.topology import Link, Publisher, Scenario
from betimes.pipeline.tables.files import TablesError
from betimes.pipeline.tables.shapes import TRANSFERS
from betimes.pipeline.telemetry.job import run_pipeline
from betimes.pipeline.twin import twin as module
from betimes.pipeline.twin.twin import both_ways, measured_on_time, twin_of
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import SimulatedNetwork
from betimes.simulator.traces import play, spreads
from betimes.telemetry.files import TelemetryWriter


def test_a_twin_has_the_links_subscribers_and_events_of_the_tables(tmp_path):
    twin = twin_of(make_tables(tmp_path))
    assert [link.name for link in twin.scenario.links] == ["a->b", "b->c"]
    assert twin.scenario.links[0].s_per_kb_mean == pytest.approx(0.05, rel=0.05)
    assert {subscriber_of(each) for each in twin.scenario.subscriptions} == {"s", NASTY}
    assert twin.scenario.duration_s == pytest.approx(9.0)
    (trace,) = twin.traces
    assert (trace.publisher, trace.broker, trace.topics[0]) == ("p", "a", "t")
    assert trace.time_s.tolist() == pytest.approx(list(range(10)))
    assert trace.attributes[-1] == {"x": -1}
    assert twin.events == 11, "the last one stands for two"


def test_what_was_measured_is_known_by_subscriber_and_home(tmp_path):
    found = measured_on_time(make_tables(tmp_path, wanted={NASTY: 40.0}))
    assert found == {
        ("s", "b"): (0.8, 10.0),
        (NASTY, "c"): (0.6, 40.0),
    }


def test_times_are_brought_to_one_clock(tmp_path):
    folder = make_tables(tmp_path) / "current"
    shutil.rmtree(folder / TRANSFERS.name)
    came = {"number": 1, "time_s": 151.5, "age_s": 0.5, "transfer_s": 0.5, "source": "a", "target": "b"}
    put_rows(folder, TRANSFERS, [PASSAGE | came])  # b's clock is 50 s ahead of a's
    rows = [{"origin": "a", "number": 1, "broker": "a", "time_s": 101.0}]
    assert module._differences(folder, rows) == {("a", "b"): 50.0}


def test_a_link_that_carried_nothing_is_as_fast_as_the_other_direction(tmp_path):
    twin, assumed = both_ways(twin_of(make_tables(tmp_path)))
    assert assumed == ("b->a", "c->b")
    speeds = {link.name: link.s_per_kb_mean for link in twin.scenario.links}
    assert speeds["b->a"] == speeds["a->b"]
    assert both_ways(twin)[1] == ()


def test_tables_without_anything_to_play_are_refused(tmp_path):
    with pytest.raises(TablesError, match="no events, or no subscriptions"):
        twin_of(make_empty_tables(tmp_path))


def test_more_events_than_a_twin_plays_are_refused_with_a_hint(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "EVENTS_READ_MAX", 5)
    with pytest.raises(TablesError, match="--since 15m"):
        twin_of(make_tables(tmp_path))


@pytest.mark.spark
def test_a_twin_does_as_its_network_did_and_as_it_does_when_more_is_published(spark, tmp_path):
    def network(rate_per_s: float) -> Scenario:
        return Scenario(
            name="busy",
            duration_s=600.0,
            processing_s=0.002,
            brokers=("a", "b", "c"),
            links=(
                Link(source="a", target="b", s_per_kb_mean=0.05, s_per_kb_sd=0.01),
                Link(source="b", target="c", s_per_kb_mean=0.055, s_per_kb_sd=0.02),
            ),
            publishers=(
                Publisher(
                    name="p",
                    broker="a",
                    rate_per_s=rate_per_s,
                    attributes={"x": Uniform(0.0, 10.0)},
                    size_kb=Constant(10.0),
                ),
            ),
            subscriptions=tuple(
                Subscription(
                    id=f"s{number}",
                    home=home,
                    filter=parse_filter(f"x < {below}"),
                    qos=QoS(delay_s_max=delay_s, price=price),
                )
                for number, (home, below, delay_s, price) in enumerate(
                    [("c", 9, 3.0, 1.0), ("c", 5, 2.0, 3.0), ("b", 8, 1.5, 1.0), ("b", 10, 4.0, 2.0)]
                )
            ),
        )

    eb = strategy_named("eb")
    with TelemetryWriter(tmp_path / "telemetry") as writer:
        SimulatedNetwork(network(1.5), eb, 7, sink=writer.write).run()
    run_pipeline(spark, tmp_path / "telemetry", tmp_path / "tables")
    twin = twin_of(tmp_path / "tables")
    measured = measured_on_time(tmp_path / "tables")
    before = spreads([play(twin, eb, seed) for seed in (1, 2, 3)])
    for each in twin.scenario.subscriptions:
        assert before.subscribers[each.id][0] == pytest.approx(
            measured[subscriber_of(each), each.home][0], abs=0.05
        )
    truth = [SimulatedNetwork(network(3.0), eb, seed).run() for seed in (11, 12, 13)]
    after = spreads([play(twin.faster(2.0), eb, seed) for seed in (1, 2, 3)])
    for each in twin.scenario.subscriptions:
        shares = [
            found.on_time_share
            for run in truth
            for found in run.subscribers
            if found.subscriber == subscriber_of(each)
        ]
        assert after.subscribers[each.id][0] == pytest.approx(float(np.mean(shares)), abs=0.05)
    assert after.on_time_share[0] < before.on_time_share[0] - 0.1
