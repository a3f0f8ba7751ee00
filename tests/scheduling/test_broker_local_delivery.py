"""Who gets an event, and who has had a later one?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from betimes.model.events import Event, EventId
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import Reason
from betimes.scheduling.broker import LocalDelivery
from betimes.scheduling.demand_table import DemandTable
from betimes.scheduling.effects import Deliver, Drop, Effect

BOUNDS_S = (1.0, 5.0, math.inf)


def table(bounds_s: Sequence[float] = BOUNDS_S) -> DemandTable:
    wishes = [
        Subscription(id=f"s{number}", home="here", qos=QoS(delay_s_max=bound_s))
        for number, bound_s in enumerate(bounds_s)
    ]
    return DemandTable(["here"], wishes)


def event(number: int = 1, origin: str = "p", deadline_s: float = math.inf) -> Event:
    return Event(id=EventId(origin, number), deadline_s=deadline_s)


def delivered(effects: list[Effect]) -> tuple[set[str], set[str]]:
    """Return who got it, and who of these had a later one."""
    found = [each for each in effects if isinstance(each, Deliver)]
    return {one.id for each in found for one in each.subscriptions}, {
        name for each in found for name in each.out_of_order
    }


@given(st.floats(0.0, 10.0), st.sampled_from([0.5, 3.0, math.inf]))
def test_in_time_is_the_stricter_of_both_bounds(age_s, deadline_s):
    wanted, known = event(deadline_s=deadline_s), table()
    effects = LocalDelivery("here").deliver(wanted, known.demand(wanted), age_s)
    in_time = {
        each.id for each in known.demand(wanted).at_home["here"] if age_s <= each.delay_s_allowed(wanted)
    }
    assert delivered(effects)[0] == in_time
    late = [each for each in effects if isinstance(each, Drop)]
    missed = len(BOUNDS_S) - len(in_time)
    expected = [(Reason.EXPIRED, ("here",), (missed,))] if missed else []
    assert [(each.reason, each.destinations, each.subscribers) for each in late] == expected


@given(st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 6), st.sampled_from([0.5, 3.0, 9.0]))))
def test_out_of_order_is_who_has_had_a_later_one_of_the_same_origin(arrivals):
    local, known = LocalDelivery("here"), table()
    latest: dict[tuple[str, str], int] = {}
    for origin, number, age_s in arrivals:
        came = event(number, origin)
        got, overtaken = delivered(local.deliver(came, known.demand(came), age_s))
        assert overtaken == {name for name in got if latest.get((name, origin), 0) > number}
        for name in got:
            latest[name, origin] = max(latest.get((name, origin), 0), number)


def test_where_nobody_wants_it_nothing_happens():
    wanted = event()
    assert LocalDelivery("elsewhere").deliver(wanted, table().demand(wanted), 0.0) == []
