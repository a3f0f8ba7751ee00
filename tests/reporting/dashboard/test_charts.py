"""Do charts show what is known, and nothing where nothing is?"""

from __future__ import annotations

import json

from betimes.reporting.dashboard.broker_watch import BrokerFacts, BrokerWatch, LinkFacts, Moment
from betimes.reporting.dashboard.charts import (
    BUSY,
    DOWN,
    QUIET,
    drops_options,
    earning_options,
    network_options,
    share_options,
)


def watched(sent_kb: float) -> BrokerWatch:
    watch = BrokerWatch()
    for second, kb in ((0.0, 0.0), (1.0, sent_kb)):
        link = LinkFacts(s_per_kb=0.01, sent_kb=kb)
        watch.heard("m", BrokerFacts(name="a", uptime_s=second, queue=7.0, links={"b": link}), second)
    return watch


def moment(share: float | None) -> Moment:
    return Moment(
        at_s=0.0,
        sent=1.0,
        lost=1.0,
        on_time_share=share,
        sent_per_s=1.0,
        lost_per_s=1.0,
        earned=3.0,
        earned_per_s=2.5,
    )


def test_the_network_shows_brokers_what_waits_there_and_links_with_their_load():
    (series,) = network_options(watched(80.0))["series"]
    assert [dot["id"] for dot in series["data"]] == ["a", "b"]
    assert series["data"][0]["name"] == "a: 7 waiting"
    assert series["data"][0]["symbolSize"] > series["data"][1]["symbolSize"]
    (line,) = series["links"]
    assert (line["source"], line["target"], line["value"]) == ("a", "b", 80)
    assert line["lineStyle"]["color"] == BUSY
    assert network_options(watched(10.0))["series"][0]["links"][0]["lineStyle"]["color"] == QUIET
    assert line["label"] == {"show": True}
    assert network_options(watched(0.1))["series"][0]["links"][0]["label"] == {"show": False}, "0 %"


def test_shares_and_earnings_are_drawn_over_time():
    options = share_options([moment(0.5), moment(None), moment(0.75)])
    assert options["series"][0]["data"] == [0.5, None, 0.75]
    assert options["yAxis"]["max"] == 1.0
    assert options["yAxis"]["splitLine"]["lineStyle"]["opacity"] < 0.5, "a grid stays behind, in the dark too"
    assert earning_options([moment(0.5)])["series"][0]["data"] == [2.5]


def test_drops_are_sorted_and_reasons_without_any_left_out():
    options = drops_options({"expired": 5.0, "hopeless": 9.0, "queue full": 0.0})
    assert options["yAxis"]["data"] == ["expired", "hopeless"]
    assert options["series"][0]["data"] == [5.0, 9.0]


def test_of_nothing_charts_are_empty_and_all_of_them_are_json():
    for options in (
        network_options(BrokerWatch()),
        share_options([]),
        earning_options([]),
        drops_options({}),
    ):
        json.dumps(options, allow_nan=False)
        assert not any(series["data"] for series in options["series"])


def test_where_nothing_was_dropped_the_chart_says_so():
    assert drops_options({"expired": 0.0})["title"]["text"] == "Nothing was dropped."
    assert "title" not in drops_options({"expired": 1.0})
    assert drops_options(None)["title"]["text"] == "", "no broker has told"


def test_a_link_that_is_down_looks_it():
    watch = BrokerWatch()
    watch.heard("m", BrokerFacts(name="a", links={"b": LinkFacts(is_up=False)}), 0.0)
    (line,) = network_options(watch)["series"][0]["links"]
    assert line["lineStyle"]["color"] == DOWN
    assert line["label"]["formatter"] == "down"
