"""Do tables say who feeds whom with what, and who wants what?"""

from __future__ import annotations

import numpy as np
from tests.oracles.peer_trials import Trial

from betimes.peers.settings import our_settings
from betimes.simulator.peers.floods import (
    CHILD,
    GONE,
    LENGTH,
    NEEDED,
    NEEDED_STOP,
    PARENT,
    FeedTable,
    all_wanted,
    boxes_of,
)


def test_rows_of_peers_come_behind_those_that_are_there():
    trial = Trial(our_settings(6, 0.3, 4), 1)
    trial.run(20)
    network = trial.network
    places = {name: place for place, name in enumerate(network.names)}
    rows = FeedTable((10, 20, 30, 40))
    for peer in network.peers:
        rows.add(peer, places)
    assert rows.line_first[0] == 10
    assert rows.child_stop[-1] == rows.sizes()[2] == 30 + len(rows.children)
    for place, peer in enumerate(network.peers):
        lines = rows.lines[rows.line_first[place] - 10 : rows.line_stop[place] - 10]
        assert [line[LENGTH] for line in lines] == [dz.length + 1 for dz in peer.lines.dz]
        fed = [each.parent for each in peer.lines.by_dz.values()]
        assert [network.names[line[PARENT]] if line[PARENT] >= 0 else None for line in lines] == fed
        for child in rows.children[rows.child_first[place] - 30 : rows.child_stop[place] - 30]:
            needed = rows.needed[child[NEEDED] - 40 : child[NEEDED_STOP] - 40]
            told = peer.children.by_name[network.names[child[CHILD]]].needed
            assert {bits for bits, _ in needed} == {dz.bits for dz in told}


def test_who_is_not_here_has_no_place():
    trial = Trial(our_settings(6, 0.3, 4), 1)
    trial.run(10)
    rows = FeedTable((0, 0, 0, 0))
    for peer in trial.network.peers:
        rows.add(peer, {})
    assert {child[CHILD] for child in rows.children} == {GONE}


def test_boxes_of_a_peer_stand_together():
    box, other = ((0, 3), (4, 5)), ((1, 1), (2, 2))
    boxes = boxes_of([(), (box, other), (), (other,)], 2)
    assert boxes.first.tolist() == [0, 0, 2, 2]
    assert boxes.stop.tolist() == [0, 2, 2, 3]
    assert np.array_equal(boxes.cells, np.array([box, other, other]))


def test_an_event_is_wanted_inside_of_a_box_up_to_its_last_cell():
    boxes = boxes_of([(), (((0, 3), (4, 5)), ((1, 1), (2, 2)))], 2)
    found = np.ones((2, 4), np.bool_)
    all_wanted(boxes, np.array([[3, 5], [4, 5], [1, 2], [1, 3]]), found)
    assert found.tolist() == [[False] * 4, [True, False, True, False]]
