"""Are promises made, refused and re-made over the given links of six brokers?

a and f are joined by two ways: over b and c, and over d and e. Links carry 60 KB/s each way.
"""

from __future__ import annotations

from collections import deque

import pytest

from betimes.model.topology import Link
from betimes.reservations.node import ReservingNode, ReservingSettings
from betimes.reservations.outcomes import Accepted, Interrupted, RefusalReason, Refused
from betimes.reservations.overlay.mesh import MeshWays
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import Manner, SendSignal
from betimes.routing.routing_table import routing_tables

ENDS = (("a", "b"), ("b", "c"), ("c", "f"), ("a", "d"), ("d", "e"), ("e", "f"))
NAMES = "abcdef"
LINK_BYTES_PER_S = 60_000
SETTINGS = ReservingSettings(refresh_every_s=2.0, lapse_after_s=6.0, answer_s_max=1.0)


class Six:
    """The brokers and a wire that loses nothing but what goes to the dead."""

    def __init__(self):
        self.now_s = 0.0
        self.dead = set()
        self.news = []
        self.ways = {name: MeshWays(table) for name, table in self.tables().items()}
        self.nodes = {
            name: ReservingNode(ways, SETTINGS, lambda _: LINK_BYTES_PER_S)
            for name, ways in self.ways.items()
        }

    def tables(self):
        links = [
            Link(source=source, target=target, s_per_kb_mean=1 / 60, delay_s=0.002)
            for left, right in ENDS
            for source, target in ((left, right), (right, left))
            if not {source, target} & self.dead
        ]
        return routing_tables(NAMES, links, NAMES)

    def do(self, name, effects):
        waiting = deque((name, effect) for effect in effects)
        while waiting:
            sender, effect = waiting.popleft()
            if not isinstance(effect, SendSignal):
                self.news.append(effect)
            elif effect.to not in self.dead:
                assert effect.to in [each.name for each in self.ways[sender].neighbours]
                answers = self.nodes[effect.to].receive(sender, effect.message, self.now_s)
                waiting.extend((effect.to, each) for each in answers)

    def subscribe(self, name, subscription, kilobytes, **different):
        self.news.clear()
        wish = ReservationRequest(
            subscription=subscription,
            event_type="cars",
            bytes_per_s=kilobytes * 1000,
            is_shared=False,
            **different,
        )
        self.do(name, self.nodes[name].subscribe(wish, self.now_s))
        return self.news[-1]

    def kill(self, name):
        self.dead.add(name)
        for other, table in self.tables().items():
            self.ways[other].follow(table)
        for left, right in ENDS:
            for end, gone in ((left, right), (right, left)):
                if gone == name and end not in self.dead:
                    self.do(end, self.nodes[end].lost(name, self.now_s))

    def wait(self, seconds):
        for _ in range(seconds):
            self.now_s += 1.0
            for name in NAMES:
                if name not in self.dead:
                    self.do(name, self.nodes[name].beat(self.now_s))

    def promised(self):
        return {
            (name, neighbour): node.outward.promised(neighbour)
            for name, node in self.nodes.items()
            for neighbour in node.outward.neighbours
            if name not in self.dead
        }


@pytest.fixture
def six():
    found = Six()
    found.do("a", found.nodes["a"].advertise("cars", 20_000, 0.0))
    return found


@pytest.mark.parametrize("manner", list(Manner))
def test_a_guarantee_is_accepted_and_given_back(six, manner):
    news = six.subscribe("f", "s", 20, manner=manner, latency_s_max=0.5)
    assert isinstance(news, Accepted)
    assert news.bytes_per_s == 20_000
    assert set(six.promised().values()) == {20_000}
    six.do("f", six.nodes["f"].unsubscribe("s", six.now_s))
    assert six.promised() == {}


def test_a_search_fills_both_ways_before_anybody_is_refused_with_what_would_fit(six):
    told = [six.subscribe("f", f"s{number}", 25, manner=Manner.COORDINATES) for number in range(5)]
    assert [type(each) for each in told] == [Accepted] * 4 + [Refused]
    refused = told[-1]
    assert (refused.reason, refused.is_definite) == (RefusalReason.NO_BANDWIDTH, True)
    assert refused.room_bytes_per_s == 10_000
    assert max(six.promised().values()) == 50_000
    assert isinstance(six.subscribe("f", "less", 10, manner=Manner.COORDINATES), Accepted)


def test_what_a_killed_broker_carried_is_promised_elsewhere_at_once_and_stays(six):
    news = six.subscribe("f", "s", 20, manner=Manner.COORDINATES)
    killed = six.nodes["f"].branches.upstream(news.flow)
    six.news.clear()
    six.kill(killed)
    six.wait(1)
    # The rendezvous may have died too: then the advertisement has to come to the next one first.
    six.wait(int(SETTINGS.lapse_after_s))
    assert isinstance(six.news[0], Interrupted)
    assert isinstance(six.news[-1], Accepted)
    held = six.promised()
    assert held
    assert all(killed not in ends for ends in held)
    six.wait(20)
    assert six.promised() == held


def test_nothing_is_kept_for_a_subscribers_broker_that_was_killed(six):
    six.subscribe("f", "s", 20)
    six.kill("f")
    six.wait(int(SETTINGS.lapse_after_s) + 1)
    assert six.promised() == {}


def test_a_broker_that_leaves_tells_those_below(six):
    six.subscribe("f", "s", 20)
    six.news.clear()
    six.do("a", six.nodes["a"].leave(six.now_s))
    assert isinstance(six.news[0], Interrupted)
    assert six.promised() == {}


def test_where_ways_have_changed_what_is_published_is_told_and_what_is_missing_asked_for(six):
    publisher = [type(each.message).__name__ for each in six.nodes["a"].ways_changed(six.now_s)]
    assert publisher == ["Advertise"] or len(six.nodes["a"].rendezvous)
    assert six.nodes["f"].ways_changed(six.now_s) == []
    wish = ReservationRequest(subscription="s", event_type="cars", home="f", manner=Manner.COORDINATES)
    six.nodes["f"].subscribe(wish, six.now_s)  # what it asks is lost
    six.news.clear()
    six.do("f", six.nodes["f"].ways_changed(six.now_s))
    assert [type(each) for each in six.news] == [Accepted]
    assert six.nodes["f"].ways_changed(six.now_s) == []
