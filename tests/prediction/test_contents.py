"""Is the share of events that a filter wants the share that it would get?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from tests.filter_strategies import events as any_events
from tests.filter_strategies import filters

from betimes.language.filters.parse import read_filter
from betimes.model.distributions import Choice, Constant, Distribution, Exponential, Normal, Uniform
from betimes.model.statistics import ContentSample, PublisherStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.contents import DEADLINES_MAX, content_of
from betimes.simulator.chance import draw_values, stream

ATTRIBUTES: dict[str, Distribution] = {
    "kind": Choice(("car", "bus", None), (5.0, 2.0, 1.0)),
    "speed": Normal(50.0, 15.0),
    "lane": Choice((1.0, 2.0, 3.0)),
    "wet": Choice((True, False), (1.0, 3.0)),
    "weight": Exponential(3.0),
    "country": Constant(7.0),
}
FILTERS = [
    "TRUE",
    "speed > 60",
    "speed BETWEEN 40 AND 60 AND kind = 'car'",
    "kind IS NULL OR lane >= 2",
    "NOT (kind = 'bus') AND wet AND weight < 2",
    "country = 7 AND lane IN (1, 3)",
    "country = 8",
    "colour = 'red'",
    "colour IS NULL AND kind LIKE 'c%'",
]


def publisher(**facts):
    return PublisherStatistics(name="p", broker="b", rate_per_s=1.0, **facts)


def wanted_of(content, subscription):
    found = content.wanted(subscription)
    assert found is not None
    return found


def subscription(text, pattern="#"):
    return Subscription(id="s", home="b", filter=read_filter(text).filter, pattern=pattern)


@pytest.mark.long
@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.parametrize("atoms_max", [200_000, 40])
def test_a_mass_is_the_share_of_drawn_events_that_match(text, atoms_max):
    wanted = subscription(text)
    others = [subscription(each) for each in FILTERS]
    content = content_of(publisher(attributes=ATTRIBUTES), others, atoms_max=max(atoms_max, 1))
    if atoms_max == 40:
        content = content_of(publisher(attributes=ATTRIBUTES), any_filter=True)
    count = 20_000
    columns = [draw_values(stream(1, name), law, count) for name, law in ATTRIBUTES.items()]
    events = [dict(zip(ATTRIBUTES, values, strict=True)) for values in zip(*columns, strict=True)]
    drawn = sum(wanted.filter.matches(event) for event in events) / count
    found = content.mass(wanted_of(content, wanted))
    assert found == pytest.approx(drawn, abs=4 * math.sqrt(max(drawn * (1 - drawn), 1e-9) / count) + 2e-3)


def test_masses_of_independent_attributes_are_exact():
    wanted = subscription("kind = 'car' AND speed > 50 AND weight < 3")
    content = content_of(publisher(attributes=ATTRIBUTES), [wanted])
    expected = 5 / 8 * 0.5 * (1 - math.exp(-1.0))
    assert content.mass(wanted_of(content, wanted)) == pytest.approx(expected, rel=1e-12)


@given(filters(), any_events())
def test_an_atom_of_a_sample_matches_as_its_event_does(text, attributes):
    wanted = subscription(text)
    sample = (ContentSample(topic="t", attributes=attributes, deadline_s=1.0),)
    content = content_of(publisher(sample=sample))
    found = wanted_of(content, wanted)
    assert np.array_equal(found, [wanted.filter.matches(attributes)])
    assert np.array_equal(found, [wanted.filter.matches(event) for event in content.events()])


def test_a_sample_counts_by_weight_topic_and_lifetime():
    sample = (
        ContentSample(topic="a/b", attributes={"x": 1.0}, deadline_s=2.0, weight=3.0),
        ContentSample(topic="a/c", attributes={"x": 2.0}, deadline_s=5.0, weight=1.0),
    )
    content = content_of(publisher(sample=sample))
    assert content.deadlines_s.tolist() == [2.0, 5.0]
    assert content.mass_by_deadline(wanted_of(content, subscription("x > 0"))).tolist() == [0.75, 0.25]
    assert np.array_equal(wanted_of(content, subscription("x > 0", "a/c")), [False, True])
    assert content.wanted(subscription("x > 0", "z")) is None


def test_many_lifetimes_become_few_with_the_same_mean():
    seconds = np.linspace(1.0, 9.0, 101)
    sample = tuple(ContentSample(topic="", attributes={}, deadline_s=each) for each in (*seconds, math.inf))
    content = content_of(publisher(sample=sample))
    masses = content.mass_by_deadline(np.ones(102, np.bool_))
    assert len(content.deadlines_s) == DEADLINES_MAX
    assert masses[-1] == pytest.approx(1 / 102)
    assert content.deadlines_s[-1] == math.inf
    assert content.deadlines_s[:-1] @ masses[:-1] == pytest.approx(seconds.sum() / 102)


def test_a_spread_deadline_becomes_its_quantiles():
    content = content_of(publisher(deadline_s=Uniform(10.0, 30.0)))
    assert content.deadlines_s.mean() == pytest.approx(20.0)
    assert content.mass_by_deadline(np.ones(1, np.bool_)).sum() == pytest.approx(1.0)
    assert content_of(publisher()).deadlines_s.tolist() == [math.inf]
