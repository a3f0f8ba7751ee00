"""Is a parent told what is needed, and only when that is news?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.peers.test_children import OWN, card, children, connect

from betimes.matching.dz.expressions import Dz, covers, overlaps, read_dz
from betimes.peers.coverage import CoverageTable
from betimes.peers.messages import PeerRefresh, SendToPeer
from betimes.peers.peer import NEEDED_MAX, Needs, needed_of
from betimes.peers.settings import our_settings

WIDE, MINE, THEIRS = map(read_dz, ("0", "0000", "01"))
expressions = st.integers(1, 2**9 - 1).map(Dz)


def fed(by: str = "parent") -> CoverageTable:
    lines = CoverageTable([WIDE], 0.0)
    lines.by_dz[WIDE].parent = by
    return lines


@given(expressions, st.lists(expressions, max_size=60))
def test_all_that_is_wanted_of_an_expression_is_needed_and_little_else(dz, wanted):
    needed = needed_of(dz, wanted)
    assert len(needed) <= NEEDED_MAX
    assert all(covers(dz, part) for part in needed)
    for each in wanted:
        if overlaps(each, dz):
            inner = each if covers(dz, each) else dz
            assert any(covers(part, inner) for part in needed)
    if not any(overlaps(each, dz) for each in wanted):
        assert needed == ()


def test_what_is_offered_but_wanted_by_nobody_is_not_needed():
    needs, here = Needs((MINE,)), children(our_settings(6))
    assert needs.of_each((WIDE,), here)[WIDE] == (MINE,)
    assert needs.whole(fed(), here) == ()
    connect(here, card("a", 3.0, "01"))
    assert needs.of_each((WIDE,), here)[WIDE] == (MINE, THEIRS)
    connect(here, card("b", 3.0, "0"))
    assert needs.of_each((WIDE,), here)[WIDE] == (WIDE,)
    assert needs.whole(fed(), here) == (WIDE,)


def test_parents_are_told_what_they_do_not_know():
    needs, here, lines = Needs((MINE,)), children(our_settings(6)), fed()
    first = [SendToPeer("parent", PeerRefresh(OWN, (WIDE,), (MINE,)))]
    assert needs.news(lambda: OWN, lines, here) == first
    assert needs.news(lambda: OWN, lines, here) == []
    assert needs.news(lambda: OWN, lines, here, repeats=True) == first
    connect(here, card("a", 3.0, "01"))
    assert needs.news(lambda: OWN, lines, here) == [
        SendToPeer("parent", PeerRefresh(OWN, (WIDE,), (MINE, THEIRS)))
    ]
    lines.by_dz[WIDE].parent = "another"
    assert [each.to for each in needs.news(lambda: OWN, lines, here)] == ["another"]
