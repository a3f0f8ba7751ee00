"""Are the numbers of a scenario found again in what its brokers wrote down?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.pipeline.report_tables import put_rows

from betimes.language.filters.parse import parse_filter
from betimes.language.json.statistics import read_statistics, statistics_text
from betimes.model.distributions import Choice, Constant, Gamma, Histogram, Normal, Uniform
from betimes.model.statistics import subscriber_of
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.topology import Link, Publisher, Scenario
from betimes.pipeline.tables.files import TablesError, current_tables, read_arrow
from betimes.pipeline.tables.shapes import LINKS, RELIABILITY
from betimes.pipeline.telemetry.job import run_pipeline
from betimes.pipeline.telemetry.model import (
    _counted,
    access_points,
    broker_statistics,
    learn_statistics,
    link_statistics,
    publisher_statistics,
    speeds_seen,
)
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import SimulatedNetwork
from betimes.telemetry.files import TelemetryWriter

SCENARIO = Scenario(
    name="known",
    duration_s=3000.0,
    processing_s=0.002,
    brokers=("a", "b", "c"),
    links=(
        Link(source="a", target="b", s_per_kb_mean=0.05, s_per_kb_sd=0.01),
        Link(source="b", target="c", s_per_kb_mean=0.08, s_per_kb_sd=0.02),
    ),
    publishers=(
        Publisher(
            name="p", broker="a", rate_per_s=0.7, attributes={"x": Uniform(0.0, 10.0)}, size_kb=Constant(10.0)
        ),
        Publisher(
            name="q",
            broker="b",
            rate_per_s=0.5,
            gaps="uniform",
            attributes={"x": Uniform(0.0, 10.0), "kind": Choice(("car", "bus"))},
            size_kb=Uniform(5.0, 15.0),
            access=Link(source="q", target="b", s_per_kb_mean=0.02, s_per_kb_sd=0.004),
        ),
    ),
    subscriptions=(
        Subscription(id="s1", home="c", filter=parse_filter("x < 5"), qos=QoS(delay_s_max=4.0, price=2.0)),
        Subscription(
            id="s2", home="b", filter=parse_filter("kind = 'car'"), qos=QoS(delay_s_max=1.0, reliability=0.9)
        ),
    ),
)


@pytest.mark.spark
def test_the_numbers_of_a_scenario_are_found_again(spark, tmp_path):
    with TelemetryWriter(tmp_path / "telemetry") as writer:
        outcome = SimulatedNetwork(SCENARIO, strategy_named("fifo"), 5, sink=writer.write).run()
    run_pipeline(spark, tmp_path / "telemetry", tmp_path / "tables")
    found = learn_statistics(tmp_path / "tables")
    assert read_statistics(statistics_text(found), "handed on") == found

    links = {link.name: link for link in found.links}
    assert set(links) == {"a->b", "b->c", "q->b"}
    access = [each.access for each in SCENARIO.publishers if each.access]
    for known in (*SCENARIO.links, *access):
        speed = links[known.name].s_per_kb
        assert speed is not None
        # Four deviations of the mean of some 700 draws or more, and as much of their deviation.
        assert speed.mean == pytest.approx(known.s_per_kb_mean, abs=4 * known.s_per_kb_sd / math.sqrt(700))
        assert math.sqrt(speed.variance) == pytest.approx(known.s_per_kb_sd, rel=4 / math.sqrt(2 * 700))
        assert links[known.name].reliability == 1.0

    assert [broker.name for broker in found.brokers] == ["a", "b", "c"]
    assert all(isinstance(broker.processing_s, Constant) for broker in found.brokers)
    assert [broker.processing_s.mean for broker in found.brokers] == pytest.approx([0.002] * 3)

    publishers = {each.name: each for each in found.publishers}
    assert {name: each.broker for name, each in publishers.items()} == {"p": "a", "q": "b"}
    for known_publisher, scv in zip(SCENARIO.publishers, (1.0, 1.0 / 3.0), strict=True):
        each = publishers[known_publisher.name]
        events = known_publisher.rate_per_s * SCENARIO.duration_s
        assert each.rate_per_s == pytest.approx(known_publisher.rate_per_s, rel=4 / math.sqrt(events))
        assert each.gaps_scv == pytest.approx(scv, abs=4 * scv * math.sqrt(8 / events))
        assert each.size_kb.mean == pytest.approx(10.0, rel=0.05)
        assert len(each.sample) == 1000
        values = [float(one.attributes["x"] or 0.0) for one in each.sample]
        assert np.mean(values) == pytest.approx(5.0, abs=4 * 10 / math.sqrt(12 * 1000))
    assert publishers["p"].size_kb == Constant(10.0)

    assert {subscriber_of(each): (each.home, each.qos, each.filter) for each in found.subscriptions} == {
        each.id: (each.home, each.qos, each.filter) for each in SCENARIO.subscriptions
    }

    waits = {(wait.publisher, wait.station): wait for wait in found.waits}
    assert {station for _, station in waits} == {"a->b", "b->c", "q->b"}
    assert all(0.0 <= wait.waited_share <= 1.0 and wait.mean_s > 0.0 for wait in waits.values())
    assert found.over_s == pytest.approx(3000.0, rel=0.01)
    assert found.learned_at_s is not None
    assert found.learned_at_s > 1e9

    measured = read_arrow(RELIABILITY, current_tables(tmp_path / "tables")).to_pylist()
    shares = {each.subscriber: each.on_time_share for each in outcome.subscribers}
    assert {row["subscriber"]: row["on_time_share"] for row in measured} == pytest.approx(shares)
    assert 0.0 < min(shares.values()) < 1.0


def link_row(**given: Any) -> dict[str, Any]:
    usual = {
        "source": "a", "target": "b", "s_per_kb_mean": 1.5, "s_per_kb_variance": 1.0 / 3.0, "loss": None,
        "s_per_kb_start": 0.5, "s_per_kb_width": 0.01, "s_per_kb_weights": [1.0] * 200,
    }  # fmt: skip
    return usual | given


def test_a_link_is_its_histogram_unless_that_misleads():
    assert isinstance(link_statistics(link_row()).s_per_kb, Histogram)
    assert link_statistics(link_row(s_per_kb_variance=4.0)).s_per_kb == Normal(1.5, 2.0, low=0.0)
    dead = link_statistics(link_row(s_per_kb_mean=None, loss=1.0))
    assert (dead.s_per_kb, dead.reliability) == (None, 0.0)


def test_what_was_seen_of_a_link_is_kept_also_where_it_misleads(tmp_path):
    rows = [
        link_row(s_per_kb_variance=4.0),
        link_row(target="c", s_per_kb_mean=None, s_per_kb_weights=None),
        link_row(target="d", s_per_kb_weights=[]),
    ]
    put_rows(tmp_path, LINKS, rows)
    seen = link_statistics(link_row()).s_per_kb
    assert speeds_seen(tmp_path) == {"a->b": seen}


def test_a_line_that_chance_has_bent_is_not_believed():
    row = {
        "matching_s_mean": 0.01,
        "matching_s_variance": 1e-4,
        "matching_s_intercept": -0.01,
        "matching_s_slope": 1.0,
    }
    found = broker_statistics("a", row)
    assert isinstance(found.processing_s, Gamma)
    assert [found.processing_s.mean, found.processing_s.variance] == pytest.approx([0.01, 1e-4])
    assert found.processing_s_per_subscription == 0.0
    assert broker_statistics("a", None).processing_s == Constant(0.0)


def test_who_published_once_did_so_once_in_all_that_time():
    row = {
        "publisher": "p", "rate_per_s": None, "gaps_scv": None, "count": 1.0, "size_kb_mean": 1.0,
        "size_kb_variance": 0.0, "sample": None,
    }  # fmt: skip
    found = publisher_statistics(row, "a", 100.0)
    assert (found.rate_per_s, found.gaps_scv, found.sample) == (0.01, 1.0, ())


def test_a_publisher_is_no_access_point_if_it_is_a_broker_too():
    publisher = {"publisher": "q", "broker": "q"}
    link = {"source": "q", "target": "b"}
    assert access_points([publisher], [link], set()) == {"q": "b"}
    assert access_points([publisher], [link, {"source": "b", "target": "q"}], set()) == {}
    assert access_points([publisher], [link], {"q"}) == {}
    assert access_points([publisher], [link, {"source": "q", "target": "c"}], set()) == {}


def test_without_tables_it_is_said_what_makes_them(tmp_path):
    with pytest.raises(TablesError, match="there are no tables"):
        learn_statistics(tmp_path)


def wish_row(subscriber: str, from_s: float, until_s: float | None, **given: Any) -> dict[str, Any]:
    return {"subscriber": subscriber, "home": "a", "pattern": "#", "from_s": from_s, "until_s": until_s,
            "is_shared": False} | given  # fmt: skip


def test_who_looks_back_counts_subscriptions_that_held_for_half_of_the_time():
    rows = [
        wish_row("stays", 0.0, None),
        wish_row("left", 100.0, 160.0),
        wish_row("came late", 155.0, None),
        wish_row("was short", 110.0, 130.0),
        wish_row("group", 0.0, None, is_shared=True),
        wish_row("changed", 0.0, 150.0, pattern="#", price=1.0),
        wish_row("changed", 150.0, None, pattern="#", price=2.0),
    ]
    now = _counted(rows, 100.0, None)
    assert [row["subscriber"] for row in now] == ["stays", "came late", "changed"]
    before = {row["subscriber"]: row for row in _counted(rows, 100.0, 100.0)}
    assert set(before) == {"stays", "left", "changed"}
    assert before["changed"]["price"] == 2.0, "the terms that held last"
