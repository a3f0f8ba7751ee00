"""Is the right one asked?"""

from __future__ import annotations

from tests.peers.test_children import children
from tests.peers.test_peer import PUBLISHER, WANTED, Known, other

from betimes.peers.candidates import Candidates
from betimes.peers.coverage import CoverageTable
from betimes.peers.parents import Card
from betimes.peers.settings import our_settings

SETTINGS = our_settings(6)


def lines() -> CoverageTable:
    found = CoverageTable([WANTED], 0.0)
    found.hear_of(PUBLISHER)
    return found


def candidates(*known: Card) -> Candidates:
    return Candidates("me", SETTINGS, Known(*known), children(SETTINGS), lambda: 0.0)


def best(here: Candidates, now: float, *, is_late: bool = False) -> str | None:
    found = here.best(WANTED, lines(), 3.0, now, is_late=is_late)
    return None if found is None else found.name


def test_hints_come_before_whom_it_knows_and_publishers_last():
    here = candidates(other("known", 2.0))
    here.hear_hint(other("hinted", 2.0))
    here.hear_hint(other("me", 2.0))
    here.hear_hint(None)
    asked = []
    for cycle in range(4):
        name = best(here, float(cycle))
        asked.append(name)
        if name is not None:
            here.asked(name, float(cycle))
    assert asked == ["hinted", "known", "p", None]


def test_who_was_asked_is_not_asked_again_for_a_while():
    here = candidates(other("known", 2.0))
    here.asked("known", 0.0)
    assert best(here, SETTINGS.ask_again_after) == "p"
    assert best(here, SETTINGS.ask_again_after + 1.0) == "known"


def test_for_something_late_only_who_has_it_early_enough_will_do():
    assert best(candidates(other("known", 2.0, depth=2.0)), 0.0, is_late=True) == "known"
    assert best(candidates(other("known", 2.0, depth=3.0)), 0.0, is_late=True) == "p"
