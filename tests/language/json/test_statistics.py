"""Are statistics handed on whole, and is a text that is none refused with its places?"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from betimes.language.filters.parse import parse_filter
from betimes.language.json import statistics as statistics_texts
from betimes.language.json.statistics import StatisticsTooLargeError, read_statistics, statistics_text
from betimes.model.distributions import Choice, Constant, Exponential, Histogram, Normal, Uniform
from betimes.model.errors import FileMistakesError
from betimes.model.statistics import (
    BrokerStatistics,
    ContentSample,
    LinkStatistics,
    NetworkStatistics,
    PublisherStatistics,
    WaitStatistics,
)
from betimes.model.subscriptions import QoS, Subscription

WHOLE = NetworkStatistics(
    brokers=(
        BrokerStatistics(name="a", processing_s=Exponential(0.002), processing_s_per_subscription=1e-6),
    ),
    links=(
        LinkStatistics(source="a", target="b", reliability=0.9, s_per_kb=Histogram(0.0, 0.1, (1.0, 2.0))),
        LinkStatistics(source="b", target="a", delay_s=Normal(0.1, 0.02, low=0.0)),
    ),
    publishers=(
        PublisherStatistics(
            name="p",
            broker="a",
            rate_per_s=2.0,
            gaps_scv=0.5,
            sample=(
                ContentSample(topic="t", attributes={"x": 1.0, "kind": "car", "late": True}, deadline_s=3.0),
                ContentSample(topic="ü", attributes={}, deadline_s=math.inf, weight=2.5),
            ),
        ),
        PublisherStatistics(
            name="q",
            broker="b",
            rate_per_s=1.0,
            topic="t",
            attributes={"x": Uniform(0.0, 9.0), "kind": Choice(("car", "bus"))},
            deadline_s=Constant(5.0),
        ),
    ),
    subscriptions=(
        Subscription(id="s", home="b", filter=parse_filter("x > 5 AND kind = 'car'"), pattern="t/#"),
        Subscription(id="r", home="a", qos=QoS(delay_s_max=2.0, price=3.0, reliability=0.95), subscribers=2),
    ),
    waits=(
        WaitStatistics(publisher="p", station="a->b", count=9.0, waited_share=0.5, mean_s=0.1, variance=0.2),
    ),
    learned_at_s=1.7e9,
    over_s=900.0,
)


def test_what_is_written_is_read_again():
    assert read_statistics(statistics_text(WHOLE), "control") == WHOLE
    empty = NetworkStatistics(brokers=(), links=(), publishers=(), subscriptions=())
    assert read_statistics(statistics_text(empty), "control") == empty


def test_a_number_that_is_none_is_left_out():
    sample = ContentSample(topic="", attributes={"x": math.nan, "y": None, "z": 1.0}, deadline_s=1.0)
    publisher = replace(WHOLE.publishers[0], sample=(sample,))
    text = statistics_text(replace(WHOLE, publishers=(publisher,)))
    assert read_statistics(text, "control").publishers[0].sample[0].attributes == {"z": 1.0}


def changed(**given: Any) -> str:
    return json.dumps(json.loads(statistics_text(WHOLE)) | given)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "control: 1 mistake\n  the text: this is not JSON"),
        ("[" * 100_000, "the text: this is not JSON"),
        ('{"version": NaN}', "NaN is no number"),
        ("[]", "a table was expected here, not a list"),
        ("{}", "version: this is missing"),
        (changed(version=2), r"version: 2 is not known here: it must be 1 \(hint: use one version"),
        (changed(over_s=-1), "over_s: -1 is not possible"),
        (changed(oddity=1), "oddity: this key is not known here"),
        (changed(brokers={}), "brokers: a list of tables was expected"),
        (changed(brokers=[{}]), r"brokers\[0\].name: this is missing"),
        (
            changed(links=[{"source": "a", "target": "b", "reliability": 2}]),
            r"links\[0\].reliability: 2 is not",
        ),
        (
            changed(links=[{"source": "a", "target": "b", "s_per_kb": {}}]),
            r"links\[0\].s_per_kb.kind: this is",
        ),
        (changed(publishers=[{"name": "p", "broker": "a"}]), r"publishers\[0\].rate_per_s: this is missing"),
        (
            changed(
                publishers=[{"name": "p", "broker": "a", "rate_per_s": 1, "sample": [{"attributes": 3}]}]
            ),
            r"publishers\[0\].sample\[0\].attributes: a table was expected",
        ),
        (
            changed(
                publishers=[
                    {"name": "p", "broker": "a", "rate_per_s": 1, "sample": [{"attributes": {"x": []}}]}
                ]
            ),
            r"attributes: a number was expected here, not a list",
        ),
        (changed(subscriptions=[{"id": "s", "home": "b", "filter": "x >"}]), r"subscriptions\[0\].filter: "),
        (
            changed(subscriptions=[{"id": "s", "home": "b"}] * 2),
            r"subscriptions\[1\].id: 's' is there already",
        ),
        (changed(waits=[{"publisher": "p", "station": "a->b"}]), r"waits\[0\].count: this is missing"),
    ],
)
def test_a_text_that_is_wrong_is_refused_with_the_place(text, said):
    with pytest.raises(FileMistakesError, match=said):
        read_statistics(text, "control")


def test_many_attributes_are_bounded():
    attributes = {f"x{number}": 1 for number in range(statistics_texts.ATTRIBUTES_MAX + 1)}
    publisher = {"name": "p", "broker": "a", "rate_per_s": 1, "sample": [{"attributes": attributes}]}
    with pytest.raises(FileMistakesError, match="1,001 attributes"):
        read_statistics(changed(publishers=[publisher]), "control")


def test_what_is_too_large_is_neither_written_nor_read(monkeypatch):
    text = statistics_text(WHOLE)
    monkeypatch.setattr(statistics_texts, "BYTES_MAX", 100)
    with pytest.raises(StatisticsTooLargeError, match="and at most 100 are allowed\nhint: "):
        statistics_text(WHOLE)
    with pytest.raises(StatisticsTooLargeError, match="control: "):
        read_statistics(text, "control")
