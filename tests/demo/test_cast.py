"""Do the others on the demo's stage get what they are to get, on live brokers?"""

from __future__ import annotations

import asyncio

import pytest

from betimes.demo.cast import ALERTS_AT, FIRST_HOME, NOTICES_AT, SECOND_HOME, perform
from betimes.model.topology import Link
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports

ENDS = (ALERTS_AT, NOTICES_AT, FIRST_HOME, SECOND_HOME)


@pytest.mark.live
def test_one_resumes_elsewhere_one_keeps_its_guarantee_and_one_is_answered():
    names = ("hub", *ENDS)
    links = [Link(source="hub", target=end, s_per_kb_mean=0.01) for end in ENDS]
    links += [Link(source=end, target="hub", s_per_kb_mean=0.01) for end in ENDS]
    plan = FleetPlan(
        ports=dict(zip(names, free_ports(len(names)), strict=True)),
        links=tuple(links),
        settings={"anonymous": True},
        fetch=("notices/#",),
    )
    with Fleet(plan):
        facts = asyncio.run(perform(plan.ports, 6.0))
    traveller = facts.traveller
    assert traveller.got == traveller.published == 30
    assert traveller.replayed >= 5
    assert (traveller.twice, traveller.out_of_order, traveller.gaps) == (0, 0, 0)
    assert facts.guaranteed.got == facts.guaranteed.published == 20
    assert facts.guaranteed.on_time >= 18
    assert "4KB/s reserved" in facts.guaranteed.answer
    assert not facts.asked.refused, "without a control centre nobody is"
