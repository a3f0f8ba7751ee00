"""Does a peer receive more than it wants only as far as it may?"""

from __future__ import annotations

from betimes.matching.dz.expressions import read_dz
from betimes.matching.dz.spaces import Dimension, Space
from betimes.peers.accuracy import Accuracy, MeasuredRates

SPACE = Space(dimensions=(Dimension(attribute="x", low=0.0, high=16.0),), levels=4)
WANTED = (((4, 4),),)  # 0100
EVEN = MeasuredRates({read_dz(f"{cell:04b}"): 10.0 for cell in range(16)})


def texts(expressions) -> list[str]:
    return [str(each) for each in expressions]


def test_at_first_it_is_as_fine_as_the_number_of_expressions_allows():
    assert texts(Accuracy(SPACE, (((3, 4),),), 0.0, 2).finest()) == ["0011", "0100"]
    assert texts(Accuracy(SPACE, (((3, 4),),), 0.0, 1).finest()) == ["0"]


def test_only_events_inside_are_wanted():
    accuracy = Accuracy(SPACE, (((3, 4),),), 0.0, 2)
    assert [accuracy.wants((cell,)) for cell in (2, 3, 4, 5)] == [False, True, True, False]


def test_it_becomes_coarser_within_its_budget():
    current = (read_dz("0100"),)
    accuracy = Accuracy(SPACE, WANTED, 0.2, 4)  # of 160 events, 32
    coarse = accuracy.coarser(current, current[0], EVEN)
    assert coarse is not None
    assert texts(coarse) == ["010"]
    coarser = accuracy.coarser(coarse, coarse[0], EVEN)
    assert coarser is not None
    assert texts(coarser) == ["01"]
    assert accuracy.coarser(coarser, coarser[0], EVEN) is None


def test_without_a_budget_or_without_knowledge_it_stays_as_it_is():
    current = (read_dz("0100"),)
    assert Accuracy(SPACE, WANTED, 0.0, 4).coarser(current, current[0], EVEN) is None
    assert Accuracy(SPACE, WANTED, 0.5, 4).coarser(current, current[0], MeasuredRates({})) is None


def measured(accuracy: Accuracy, rate: float) -> None:
    for now in range(11):
        accuracy.wanted(rate, float(now))


def test_it_becomes_finer_when_more_comes_than_it_may_take():
    accuracy = Accuracy(SPACE, WANTED, 0.1, 4)  # of 160 events, 16
    measured(accuracy, 10.0)
    current = (read_dz("01"),)
    fine = accuracy.finer(current, {current[0]: 60.0}, lambda: 160.0)
    assert fine is not None
    assert texts(fine) == ["010"]
    assert accuracy.finer(current, {current[0]: 25.0}, lambda: 160.0) is None
    assert accuracy.finer(current, {}, lambda: 160.0) is None
    assert accuracy.finer(current, {current[0]: 60.0}, lambda: None) is None
