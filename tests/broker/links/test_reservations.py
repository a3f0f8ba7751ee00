"""Do signals go over links, and become shares and pins of the broker that schedules?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.broker.networks import Net

from betimes.broker.links.packets import LinkError
from betimes.broker.links.reservations import (
    AGAIN_AFTER_S,
    AGAIN_EVERY_S,
    FLOWS_PER_SIGNAL,
    LAPSE_AFTER,
    ReservationNews,
    _parts,
)
from betimes.model.network_settings import LinkTerms
from betimes.reservations.node import PROMISED_SHARE_MAX
from betimes.reservations.outcomes import Accepted, Interrupted
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import Broken, Granted, Manner, Refresh

RATE = 100.0


class Clients:
    """Those who ask for reservations, in place of the guarantees of a broker."""

    def __init__(self) -> None:
        self.news: list[Any] = []
        self.asked_s: list[float] = []

    def hear(self, news: ReservationNews, _now_s: float) -> None:
        self.news.append(news)

    def ask_for_lost(self, now_s: float) -> None:
        self.asked_s.append(now_s)


@pytest.fixture
def net():
    """a - b - c, where cars are published at a."""
    found: Any = Net("a", "b", "c", links=tuple([LinkTerms(to=name, rate_kb_per_s=RATE) for name in "abc"]))
    for one, other in ("ab", "bc"):
        found.join(one, other, rate_kb_per_s=RATE)
    found.run(1.0)
    found.clients = Clients()
    reserved(found, "c")._clients[:] = [found.clients]
    reserved(found, "a").advertise("cars", 20_000, found.now_s)
    found.run(0.5)
    return found


def reserved(net, broker):
    return net.federation(broker).reserved


def wish(net, **different):
    asked = ReservationRequest(
        subscription="s", event_type="cars", manner=Manner.COORDINATES, home="c", **different
    )
    reserved(net, "c").subscribe(asked, net.now_s)
    net.run(0.5)


def test_a_promise_becomes_a_share_and_a_pin_on_every_link_of_the_way(net):
    wish(net)
    (accepted,) = net.clients.news
    assert isinstance(accepted, Accepted)
    for broker, onward in ("ab", "bc"):
        scheduling = net.federation(broker).broker
        assert scheduling.shares.flows == {"cars"}
        assert scheduling._pins.pinned == {("cars", "a"): {"c": onward}}
        assert reserved(net, broker).promised_bytes_per_s[onward] == 20_000
    reserved(net, "c").unsubscribe("s", net.now_s)
    net.run(0.5)
    for broker in "abc":
        assert not net.federation(broker).broker.shares
        assert net.federation(broker).broker._pins.pinned == {}


def test_a_part_of_a_link_stays_for_everything_else(net):
    assert reserved(net, "a").capacity_bytes_per_s("b") == RATE * 1000 * PROMISED_SHARE_MAX
    assert reserved(net, "a").capacity_bytes_per_s("nobody") == 0


def test_a_promise_that_nobody_refreshes_lapses(net):
    wish(net)
    net.kill("c")
    net.run(0.5)
    assert reserved(net, "b").promised_bytes_per_s == {"a": 0}
    assert reserved(net, "a").promised_bytes_per_s == {"b": 0}


def test_a_promise_outlives_many_refreshes(net):
    wish(net)
    net.run(2.0 * LAPSE_AFTER * net.federation("a").settings.refresh_every_s)
    assert reserved(net, "a").promised_bytes_per_s == {"b": 20_000}
    assert len(net.clients.news) == 1


def test_who_shuts_down_tells_those_below(net):
    wish(net)
    net.hubs["a"].shut_down(net.now_s)
    net.run(0.5)
    assert isinstance(net.clients.news[1], Interrupted)
    assert reserved(net, "b").promised_bytes_per_s == {"c": 0}


@pytest.mark.parametrize("payload", [b"", b"{}", b"\xff", b'["Granted", [1]]'])
def test_a_signal_that_makes_no_sense_is_the_neighbours_mistake(net, payload):
    with pytest.raises(LinkError, match="signal that cannot be read"):
        reserved(net, "a").hear(net.ends("a")["b"], payload, net.now_s)


def test_long_lists_of_flows_go_in_pieces():
    flows = tuple([str(number) for number in range(FLOWS_PER_SIGNAL + 1)])
    first, second = flows[:FLOWS_PER_SIGNAL], flows[FLOWS_PER_SIGNAL:]
    for kind in (Refresh, Broken):
        assert list(_parts(kind(flows))) == [kind(first), kind(second)]
    assert list(_parts(Granted("f", 0.1))) == [Granted("f", 0.1)]


@pytest.mark.long
def test_however_often_routes_change_there_is_one_question_in_a_while(net):
    asked_s = net.clients.asked_s
    asked_s.clear()
    for _ in range(20):
        net.cut("a", "b")
        net.run(0.02)
        net.join("a", "b", rate_kb_per_s=RATE)
        net.run(0.02)
    net.run(5.0)
    gaps_s = [later_s - earlier_s for earlier_s, later_s in pairwise(asked_s)]
    assert min(gaps_s) >= AGAIN_EVERY_S
    assert len(asked_s) <= 0.8 / AGAIN_EVERY_S + 1 + len(AGAIN_AFTER_S)


def test_routes_that_only_take_longer_are_no_reason_to_ask_again(net):
    asked_s = net.clients.asked_s
    net.run(2.0)
    asked_s.clear()
    reserved(net, "c").follow(reserved(net, "c")._routes._table, net.now_s)
    net.run(2.0)
    assert asked_s == []
