"""Do overlays keep what they must in rough times, and would it be noticed if they did not?"""

from __future__ import annotations

import pytest
from tests.oracles.peer_trials import Faults, Trial, looped

from betimes.peers.settings import our_settings, paper_settings

SETTINGS = {"paper": paper_settings(6, 1.0, 4), "ours": our_settings(6, 1.0, 4)}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("protocol", SETTINGS)
def test_after_churn_and_losses_every_event_reaches_all_who_want_it_once(protocol, seed):
    assert Trial(SETTINGS[protocol], seed).faults() == Faults()


def settled() -> Trial:
    trial = Trial(SETTINGS["ours"], 5)
    trial.run(10)
    trial.settle()
    return trial


@pytest.mark.long
def test_a_cycle_is_noticed():
    peers = settled().network.peers
    assert looped(peers) == []
    one, other = [peer for peer in peers if not peer.publishes][:2]
    dz = one.dz[0]
    other.lines.change((dz,), 0.0)
    one.lines.by_dz[dz].parent, other.lines.by_dz[dz].parent = other.name, one.name
    assert {one.name, other.name} <= set(looped(peers))


@pytest.mark.long
def test_a_place_too_many_is_noticed():
    trial = settled()
    fed = next(peer for peer in trial.network.peers if peer.children.by_name)
    child = next(iter(fed.children.by_name.values()))
    fed.children.by_name.update({peer.name: child for peer in trial.network.peers if peer is not fed})
    trial.run(1)
    assert trial.over_degree == 1


def test_any_fault_counts():
    assert not Faults().any
    assert Faults(doubled=1).any


def test_to_miss_something_without_a_place_is_no_violation():
    assert not Faults(unsettled=1, missing=3).violation
    assert Faults(unsettled=1, missing=3).any
    for name in ("over_degree", "cycles", "missing", "doubled", "repeated", "over_budget"):
        assert Faults(**{name: 1}).violation, name
