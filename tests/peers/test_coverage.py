"""Is it known which part of what a peer wants is covered, and by whom?"""

from __future__ import annotations

import math

from betimes.matching.dz.expressions import read_dz
from betimes.peers.coverage import Coverage, CoverageTable
from betimes.peers.parents import Card

ZERO, ONE = read_dz("0"), read_dz("11")


def publisher(name: str, text: str) -> Card:
    return Card(name, (read_dz(text),), 0.0)


def test_a_parent_covers_alone_and_publishers_only_together():
    lines = CoverageTable([ZERO], 0.0)
    line = lines.by_dz[ZERO]
    assert lines.uncovered() == [ZERO]  # nobody publishes, as far as is known
    lines.hear_of(publisher("p", "00"))
    lines.hear_of(publisher("q", "ε"))
    lines.hear_of(publisher("r", "11"))
    assert lines.relevant(ZERO) == {"p", "q"}
    line.replace("p", 1.0, publishes=True)
    assert lines.uncovered() == [ZERO]
    line.replace("q", 1.0, publishes=True)
    assert lines.uncovered() == []
    assert line.replace("a", 2.0, publishes=False) == ["p", "q"]
    assert lines.parents() == {"a"}
    assert lines.of_parent("a") == (ZERO,)
    lines.forget("q")
    assert lines.relevant(ZERO) == {"p"}


def test_who_is_lost_leaves_a_gap_from_then_on():
    line = Coverage(0.0)
    line.replace("a", 1.0, publishes=False)
    line.note(2.0, 3.0, 4.0)
    assert not line.lose("b", 5.0)
    assert line.depth == 3.0
    assert line.lose("a", 5.0)
    assert (line.parent, line.since, line.depth) == (None, 5.0, math.inf)


def test_rates_are_measured_over_a_while():
    line = Coverage(0.0)
    for now in range(10):
        line.note(3.0, 1.0, float(now))
        line.measure(float(now))
    assert line.rate is not None
    assert 2.0 < line.rate < 4.0


def test_an_event_belongs_to_the_expression_that_holds_it():
    lines = CoverageTable([ZERO, ONE], 0.0)
    found = lines.of(read_dz("1101"))
    assert found is not None
    assert found[0] == ONE
    assert lines.of(read_dz("1001")) is None
    assert lines.depth == math.inf
    lines.by_dz[ONE].is_late = True
    assert lines.late() == [ONE]


def test_it_is_late_since_the_first_that_came_too_late():
    line = Coverage(0.0)
    for is_late, now in ((True, 3.0), (True, 4.0), (False, 5.0), (True, 6.0)):
        line.judge(is_late, now)
        assert line.is_late == is_late
        assert line.late_since == {4.0: 3.0, 5.0: 3.0}.get(now, now)
