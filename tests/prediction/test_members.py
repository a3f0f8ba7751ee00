"""Is one more, or one less, a table of its own?"""

from __future__ import annotations

import math

from tests.prediction.small_statistics import between, chain

from betimes.model.subscriptions import QoS, Subscription
from betimes.prediction.contents import content_of
from betimes.prediction.delay_grids import DelayGrid
from betimes.prediction.journeys import PlaceLayout
from betimes.prediction.members import Ledger, gathered, member_of
from betimes.prediction.on_time_shares import Ends

STATISTICS = chain()
LEDGERS = [
    Ledger(
        content_of(STATISTICS.publishers[0], any_filter=True),
        PlaceLayout(STATISTICS).journey(STATISTICS.publishers[0], [0, 1]),
    )
]

ENDS = Ends(PlaceLayout(STATISTICS), DelayGrid(0.01, 256))


def member(name, high, **qos):
    wish = Subscription(id=name, home="b1", filter=between(0.0, high), qos=QoS(**qos))
    return member_of(wish, 1, LEDGERS)


def test_members_come_and_go_by_new_tables():
    empty = gathered([], LEDGERS, ENDS)
    one = empty.plus(member("s", 0.5, delay_s_max=2.0, reliability=0.9), ENDS)
    two = one.plus(member("t", 0.25), ENDS)
    assert (len(empty), len(one), len(two)) == (0, 1, 2)
    assert two.bounds_s.tolist() == [2.0, math.inf]
    assert two.promised.tolist() == [0.9, -math.inf]
    assert two.masses[0].round(3).tolist() == [[0.5], [0.25]]
    left = two.minus(0)
    assert [each.subscription.id for each in left.each] == ["t"]
    assert [each.home for each in left.each] == [1]
    assert len(two) == 2
    assert two.rows.tolist() == two.placed(ENDS).rows.tolist() == [0, 0]
    assert two.kept.tolist() == [1.0, 1.0]
    at_once = gathered(two.each, LEDGERS, ENDS)
    for column in ("rows", "kept", "bounds_s", "promised"):
        assert getattr(at_once, column).tolist() == getattr(two, column).tolist()
    assert at_once.masses[0].tolist() == two.masses[0].tolist()
    assert len(gathered([], LEDGERS, ENDS)) == 0
