"""Do children learn how late things are, and that nothing comes, while nothing is published?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.oracles.peer_trials import looped
from tests.peers.test_peer import PUBLISHER, WANTED, fed_by, other, peer, told

from betimes.peers.messages import Beat, Connect, PeerAccepted, PeerLeave, PeerRefresh
from betimes.peers.peer import beats_to, depths_from
from betimes.peers.settings import live_settings, our_settings
from betimes.simulator.peers.network import PeerNetwork
from betimes.simulator.peers.worlds import GRID, MODERATE, SPACE, UNIFORM, PeerWorld

LIVE = live_settings(2)


def test_a_beat_says_how_late_a_parent_gets_what_it_passes_on():
    me = fed_by(PUBLISHER, settings=LIVE)
    me.receive("child", Connect(other("child", 3.0), (WANTED,)), 1.0)
    assert beats_to(me.children, me.lines)[0].message == Beat(((WANTED, math.inf),))
    me.receive("p", Beat(((WANTED, 0.0),)), 2.0)
    (beat,) = [each for each in told(me.act(4.0)) if isinstance(each.message, Beat)]
    assert (beat.to, beat.message) == ("child", Beat(((WANTED, 1.0),)))
    assert beats_to(me.children, None)[0].message == Beat(((WANTED, 0.0),))
    assert me.card().depth == 1.0


def test_only_who_feeds_a_line_is_believed():
    me = fed_by(PUBLISHER, settings=LIVE)
    assert not list(depths_from("stranger", Beat(((WANTED, 0.0),)), me.lines))
    assert not list(depths_from("p", Beat(((WANTED, math.inf),)), me.lines))
    assert len(list(depths_from("p", Beat(((WANTED, 0.0),)), me.lines))) == 1


def test_a_parent_that_gets_nothing_itself_is_left():
    me = fed_by(other("a", 2.0), settings=LIVE)
    for now in (3.0, 5.0, 7.0):
        assert not [each for each in told(me.act(now)) if isinstance(each.message, PeerLeave)]
        me.receive("a", Beat(((WANTED, 1.0 if now < 4.0 else math.inf),)), now)
    left = [each for now in (9.0, 11.0) for each in told(me.act(now)) if isinstance(each.message, PeerLeave)]
    assert [each.to for each in left] == ["a"]


def test_who_is_late_looks_for_somebody_nearer_by_the_measured_delay():
    far, near = other("far", 0.3, depth=0.1), other("near", 0.2, depth=0.1)
    me = peer(settings=LIVE, delay_max=0.4)
    me.receive("slow", PeerAccepted(other("slow", 0.3), (WANTED,)), 1.0)
    me.receive("slow", Beat(((WANTED, 0.4),)), 2.0, took=0.1)
    assert me.lines.late() == [WANTED]
    me._view.cards += [far, near]  # type: ignore[attr-defined]
    me._view.delay_to = {"far": 0.35, "near": 0.2, "p": 0.5}.__getitem__  # type: ignore[method-assign,assignment]
    asked = [each.to for each in told(me.act(3.0)) if isinstance(each.message, Connect)]
    assert asked == ["near"]


def test_numbers_that_grow_in_a_cycle_end_it():
    one, two = (fed_by(other(name, 3.0), settings=LIVE) for name in ("two", "one"))
    depth, steps = 0.0, 0
    while one.lines.of_parent("two"):
        depth, steps = depth + 1.0, steps + 1
        one.receive("two", Beat(((WANTED, depth),)), 2.0)
        depth = one.lines.by_dz[WANTED].depth
    assert steps <= 15
    assert two.lines.of_parent("one") == (WANTED,)
    assert not [
        each for each in told(two.act(4.0)) if isinstance(each.message, PeerRefresh) and each.to != "one"
    ]


@pytest.mark.long
@pytest.mark.parametrize("is_in_time", [False, True])
def test_an_overlay_finds_together_though_nothing_is_published(is_in_time):
    """By hops, and by the time that messages take in a plane."""
    world = PeerWorld(GRID, UNIFORM, MODERATE, 4)
    publishers = world.publishers()
    newcomers = [*publishers, *(world.subscriber() for _ in range(40))]
    positions = np.random.default_rng(4).random((len(newcomers), 2)) if is_in_time else None
    step = 0.5 if is_in_time else 1.0
    settings = replace(live_settings(8, 1.0, 4), yield_step=step)
    network = PeerNetwork(SPACE, newcomers, settings, 4, positions=positions)
    for peer_ in network.peers[: len(publishers)]:
        peer_.published_rate = 64.0
    for _ in range(150):
        network.cycle()
    assert not [each for each in network.peers if each.lines.uncovered() or each.lines.late()]
    assert not looped(network.peers)
    for each in network.peers[len(publishers) :]:
        assert each.lines.depth <= each.delay_max
        assert (each.lines.depth % 1.0 != 0.0) == is_in_time
    got = network.publish(world.probe())
    assert got
    assert all(in_time for _, _, in_time in got)


def test_without_beats_nobody_says_how_late_it_is():
    me = fed_by(PUBLISHER, settings=our_settings(2))
    me.receive("child", Connect(other("child", 3.0), (WANTED,)), 1.0)
    assert not [each for each in told(me.act(4.0)) if isinstance(each.message, Beat)]
