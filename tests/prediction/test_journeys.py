"""Do events travel the shortest way, once, through every place on it?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.prediction.small_statistics import chain

from betimes.model.distributions import Constant
from betimes.model.errors import BetimesError
from betimes.model.statistics import BrokerStatistics, LinkStatistics, NetworkStatistics, PublisherStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.journeys import NOWHERE, PlaceLayout


def square(**facts):
    """Return a -> b -> d and a -> c -> d, the second way slower; an access link that loses a tenth."""
    delays = {"p->a": 0.0, "a->b": 1.0, "b->d": 1.0, "a->c": 1.0, "c->d": 5.0}
    links = tuple(
        LinkStatistics(source=name[0], target=name[-1], delay_s=Constant(delay_s), reliability=0.9)
        for name, delay_s in delays.items()
    )
    return NetworkStatistics(
        brokers=tuple(BrokerStatistics(name=name) for name in "abcd"),
        links=facts.pop("links", links),
        publishers=(PublisherStatistics(name="p", broker="a", rate_per_s=1.0),),
        subscriptions=(),
        **facts,
    )


def names(layout, journey, node):
    return [layout.places[int(journey.places[each])].name for each in journey.path(node)]


def test_the_shorter_of_two_ways_is_taken():
    layout = PlaceLayout(square())
    journey = layout.journey(square().publishers[0], [3, 2])
    end = int(journey.node_of_broker[3])
    assert names(layout, journey, end) == ["p->a", "a", "a->b", "b", "b->d", "d"]
    assert names(layout, journey, int(journey.node_of_broker[2])) == ["p->a", "a", "a->c", "c"]
    assert journey.arriving[end] == pytest.approx(0.9**3)
    assert journey.leaving[end] == pytest.approx(0.9**3)  # a broker loses nothing


def test_nodes_stand_in_order_of_depth():
    journey = PlaceLayout(square()).journey(square().publishers[0], range(4))
    assert all(parent < node for node, parent in enumerate(journey.parents))
    covered = np.concatenate([np.arange(len(journey.places))[level] for level in journey.levels])
    assert covered.tolist() == list(range(len(journey.places)))


def test_where_no_way_leads_there_is_no_node():
    links = tuple(each for each in square().links if each.target != "d")
    journey = PlaceLayout(square(links=links)).journey(square().publishers[0], [3])
    assert journey.node_of_broker[3] == NOWHERE


def test_a_link_that_sends_is_a_station_and_one_that_delays_is_none():
    layout = PlaceLayout(chain(s_per_kb=Constant(0.1)))
    assert [place.is_station for place in layout.places] == [True, True, True, True]
    assert [place.is_station for place in PlaceLayout(chain()).places] == [True, True, False, False]


def test_a_last_link_that_sends_is_a_place_with_a_stop_behind_it():
    wish = Subscription(id="s", home="b1")
    for s_per_kb, home in ((None, 1), (Constant(0.1), 2)):
        last = LinkStatistics(source="b1", target="s", s_per_kb=s_per_kb)
        statistics = replace(chain(), links=(*chain().links, last))
        layout = PlaceLayout(statistics)
        assert layout.home(wish) == home
        journey = layout.journey(statistics.publishers[0], [home])
        way = names(layout, journey, int(journey.node_of_broker[home]))
        assert way[:3] == ["b0", "b0->b1", "b1"]
        assert way[3:] == ([] if s_per_kb is None else ["b1->s", "s"])


def test_what_names_nothing_is_told():
    wrong = (LinkStatistics(source="z", target="a"),)
    with pytest.raises(BetimesError, match="z is neither a broker nor a publisher"):
        PlaceLayout(square(links=wrong))
    with pytest.raises(BetimesError, match="publisher q: there is no broker nowhere"):
        PlaceLayout(square()).journey(PublisherStatistics(name="q", broker="nowhere", rate_per_s=1.0), [])
