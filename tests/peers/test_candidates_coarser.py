"""Is more proposed, as far as it may be and is a gain?"""

from __future__ import annotations

from betimes.matching.dz.expressions import WHOLE, read_dz
from betimes.matching.dz.spaces import Dimension, Space
from betimes.peers.accuracy import Accuracy
from betimes.peers.candidates import coarser_for
from betimes.peers.coverage import CoverageTable
from betimes.peers.parents import Card

SPACE = Space(dimensions=(Dimension(attribute="x", low=0.0, high=16.0),), levels=4)
WANTED = read_dz("0101")
EVENLY = [(WHOLE, 160.0)]


def lines(*publishers: str) -> CoverageTable:
    found = CoverageTable([WANTED], 0.0)
    for number, text in enumerate(publishers):
        found.hear_of(Card(f"p{number}", (read_dz(text),), 0.0, 0.0))
    return found


def test_each_step_doubles_it_as_long_as_it_may():
    accuracy = Accuracy(SPACE, (((5, 5),),), 0.2, 4)  # of 160 events, 32: 30 more than the 10 that are wanted
    known = lines("0")
    assert coarser_for(WANTED, accuracy, known, EVENLY, steps=0) is None
    assert coarser_for(WANTED, accuracy, known, EVENLY) == (read_dz("010"),)
    assert coarser_for(WANTED, accuracy, known, EVENLY, steps=9) == (read_dz("01"),)


def test_another_publisher_is_no_gain():
    accuracy = Accuracy(SPACE, (((5, 5),),), 1.0, 4)
    known = lines("01", "00")
    assert coarser_for(WANTED, accuracy, known, EVENLY, steps=9) == (WHOLE,)
    assert coarser_for(WANTED, accuracy, known, EVENLY, steps=9, same_publishers=True) == (read_dz("01"),)
