"""Can what is told to fit be had right after, of all publishers, and is nothing left of what was refused?"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from tests.reservations.overlay.small_meshes import SETTINGS, TYPE, Mesh, random_links

from betimes.reservations.outcomes import Accepted, RefusalReason, Refused, enough_s
from betimes.reservations.requests import PATIENT_TRIALS, TRIALS_MAX, Fitting, ReservationRequest
from betimes.reservations.signals import Manner

WISH = ReservationRequest(
    subscription="s", event_type=TYPE, bytes_per_s=80, manner=Manner.COORDINATES, home="s"
)
NO_ROOM = Refused("s", "p", RefusalReason.NO_BANDWIDTH, True, 54, 0.05)
TOO_SLOW = Refused("s", "p", RefusalReason.TOO_SLOW, True, 0, 0.05)
DRAINED = int(SETTINGS.answer_s_max) + 1


def test_what_has_room_is_tried_and_told_once_it_was_there():
    fitting: Any = Fitting(WISH, NO_ROOM)
    first = fitting.next_trial()
    assert (first.subscription, first.bytes_per_s, first.is_trial) == ("s?1", 54, True)
    fitting.denied(NO_ROOM._replace(room_bytes_per_s=30))
    second = fitting.next_trial()
    assert (second.subscription, second.bytes_per_s) == ("s?2", 30)
    fitting.accepted(0.05)
    assert fitting.next_trial() is None
    assert fitting.refused.fits_bytes_per_s == 30


def test_what_was_not_tried_is_not_told_and_something_true_is_told_rather_than_the_most():
    fitting = Fitting(WISH, NO_ROOM)
    tried: list[Any] = []
    while (trial := fitting.next_trial()) is not None:
        tried.append(trial.bytes_per_s)
        fitting.denied(NO_ROOM)
    assert tried[:PATIENT_TRIALS] == [54, 53, 52, 51]
    assert len(tried) <= TRIALS_MAX
    assert tried[-1] < 54 / 8
    assert fitting.refused.fits_bytes_per_s == 0


def test_for_what_is_too_slow_the_fastest_is_tried_and_then_whatever_there_is():
    fitting: Any = Fitting(WISH, TOO_SLOW._replace(latency_s=0.05004))
    assert fitting.next_trial().latency_s_max == enough_s(0.05004)
    fitting.denied(NO_ROOM)
    assert fitting.next_trial().latency_s_max == math.inf
    fitting.accepted(0.2)
    assert (fitting.next_trial(), fitting.refused.had_s) == (None, 0.2)
    hopeless = Fitting(WISH, TOO_SLOW)
    for _ in range(2):
        hopeless.next_trial()
        hopeless.denied(NO_ROOM)
    assert (hopeless.next_trial(), hopeless.refused.had_s) == (None, math.inf)


def test_what_does_not_answer_says_nothing_definite():
    fitting = Fitting(WISH, NO_ROOM)
    fitting.next_trial()
    fitting.denied(Refused("s?1", None, RefusalReason.NO_ANSWER, False, 0, math.inf))
    assert fitting.next_trial() is None
    assert (fitting.refused.fits_bytes_per_s, fitting.refused.is_definite) == (0, False)


def test_what_nobody_publishes_is_not_looked_into():
    assert (
        Fitting(WISH, Refused("s", None, RefusalReason.NOBODY_PUBLISHES, False, 0, math.inf)).next_trial()
        is None
    )


class TwoPublishers:
    """Random links, of which others take some, and wishes at one home for what p and another publish."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        links = random_links(self.chance, self.chance.choice([4, 6, 8]))
        names = sorted({name for ends in links for name in ends} - {"p"})
        self.home, other = self.chance.sample(names, 2)
        self.mesh = Mesh(links, seed=seed, others=[other])
        self.mesh.after_each = self.look
        for number in range(self.chance.randrange(4)):
            crowd = ReservationRequest(
                subscription=f"crowd {number}", event_type=TYPE, bytes_per_s=20, is_shared=False
            )
            self.mesh.subscribe_all(self.chance.choice(names), crowd)
        self.bounds_s = {}
        self.told = []

    def look(self):
        for ends, promised in self.mesh.promised().items():
            assert promised <= self.mesh.links[ends][1]

    def ask(self, wish):
        """Ask; return whether it was refused, and else the latency of the longest way."""
        told = self.mesh.subscribe_all(self.home, wish)
        for each in self.mesh.news:
            if isinstance(each, Accepted) and each.subscription in self.bounds_s:
                assert each.latency_s <= self.bounds_s[each.subscription] * 1.000001
        refusals = [each for each in told if isinstance(each, Refused)]
        assert len(refusals) <= 1
        requests = self.mesh.nodes[self.home].requests
        assert requests.is_settled(wish.subscription) is not bool(refusals)
        return refusals[0] if refusals else max(each.latency_s for each in requests.held(wish.subscription))

    def step(self, name):
        takes = self.chance.choice([5, 10, 20, 40, 60])
        bound_s = self.chance.choice([math.inf, math.inf, 0.1, 0.03, 0.001])
        wish = replace(WISH, subscription=name, bytes_per_s=takes, latency_s_max=bound_s, home=self.home)
        before, others = self.mesh.promised(), dict(self.bounds_s)
        answer = self.ask(wish)
        if not isinstance(answer, Refused):
            self.bounds_s[name] = bound_s
            return
        assert not [each for each in self.mesh.news if each.subscription in others]
        assert self.mesh.promised() == self.mesh.mirrored() == before
        fitting = Fitting(wish, answer)
        while (trial := fitting.next_trial()) is not None:
            tried = self.ask(trial)
            if isinstance(tried, Refused):
                fitting.denied(tried)
            else:
                fitting.accepted(tried)
                self.mesh.unsubscribe(self.home, trial.subscription)
            assert self.mesh.promised() == before
        self.try_as_told(wish, fitting.refused)

    def try_as_told(self, wish, refused):
        told = replace(wish, subscription=f"{wish.subscription} as told")
        if refused.reason == RefusalReason.NO_BANDWIDTH and refused.fits_bytes_per_s:
            told = replace(told, bytes_per_s=refused.fits_bytes_per_s)
        elif refused.reason == RefusalReason.TOO_SLOW and math.isfinite(refused.had_s):
            told = replace(told, latency_s_max=enough_s(refused.had_s))
        else:
            return
        assert not isinstance(self.ask(told), Refused)
        self.told.append(refused.reason)
        self.mesh.wait(DRAINED)
        self.bounds_s[told.subscription] = told.latency_s_max

    def end(self):
        for name in self.bounds_s:
            self.mesh.unsubscribe(self.home, name)
        for name, node in self.mesh.nodes.items():
            for number in range(4):
                self.mesh.do(name, node.unsubscribe(f"crowd {number}", self.mesh.now_s))
        assert self.mesh.promised() == self.mesh.mirrored() == {}
        for node in self.mesh.nodes.values():
            assert (len(node.branches), len(node.requests), len(node.requests._shared_flows)) == (0, 0, 0)
            assert node.requests._shared_flows._named == {}


@pytest.mark.long
def test_of_two_publishers_what_is_refused_leaves_nothing_and_what_is_told_can_be_had():
    told = []
    for seed in range(80):
        world = TwoPublishers(seed)
        for number in range(8):
            world.step(str(number))
            if world.chance.random() < 0.5:
                world.mesh.wait(DRAINED)
        world.end()
        told += world.told
    assert told.count(RefusalReason.NO_BANDWIDTH) > 10
    assert told.count(RefusalReason.TOO_SLOW) > 10
