"""Does a tap show messages as they come, and say what is wrong with a filter?"""

from __future__ import annotations

import asyncio

import pytest

import betimes
from betimes.client.messages import Message
from betimes.reporting.dashboard import event_tap as module
from betimes.reporting.dashboard.event_tap import (
    SHOWN_MAX,
    TEXT_MAX,
    EventTap,
    filter_problem,
    message_row,
    topic_problem,
)
from betimes.reporting.dashboard.feed import BrokerPlace
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports


def test_a_filter_with_a_mistake_shows_its_place():
    problem = filter_problem("speed >> 50")
    assert "speed >> 50\n         ^" in problem
    assert filter_problem("speed > 50") == filter_problem("  ") == ""


def test_a_topic_with_a_mistake_is_told():
    assert "alone in its level" in topic_problem("a#")
    assert topic_problem("a/#") == ""
    assert topic_problem("")


def test_a_message_is_one_row_however_long_it_is():
    message = Message(
        topic="t" * 999,
        payload=b"\xff" + b"x" * 99_999,
        attributes={"a": 1.5, "b": "x"},
        id="b:1",
        age_s=0.25,
    )
    row = message_row(7, message)
    assert (row["number"], row["id"], row["age"], row["attributes"]) == (7, "b:1", "250 ms", "a = 1.5, b = x")
    assert max(len(str(each)) for each in row.values()) == TEXT_MAX
    assert message_row(1, Message(topic="t"))["age"] == ""


@pytest.mark.live
def test_a_tap_shows_what_meets_its_filter_and_no_more_than_so_many():
    async def tapped(url: str) -> EventTap:
        tap = EventTap(BrokerPlace(url=url))
        await tap.start("t/#", "x >= 10")
        async with betimes.connect(url) as client:
            for number in range(200):
                await client.publish("t/1", attributes={"x": number % 100}, qos=1)
                if tap.count >= SHOWN_MAX + 20:
                    break
                await asyncio.sleep(0.01)
        assert tap.is_open
        await tap.stop()
        return tap

    (port,) = free_ports(1)
    with Fleet(FleetPlan(ports={"b1": port}, links=(), settings={"anonymous": True})):
        tap = asyncio.run(tapped(f"mqtt://127.0.0.1:{port}"))
    assert not tap.is_open
    assert tap.count > SHOWN_MAX
    assert len(tap.rows) == SHOWN_MAX
    assert tap.rows[0]["number"] > tap.rows[1]["number"]
    assert all("x = 1." not in row["attributes"] for row in tap.rows)
    assert EventTap.open_taps == 0


def test_a_broker_that_is_not_there_is_told():
    async def tapped() -> EventTap:
        tap = EventTap(BrokerPlace(url=f"mqtt://127.0.0.1:{free_ports(1)[0]}"))
        await tap.start("#", "")
        for _ in range(100):
            if tap.problem:
                break
            await asyncio.sleep(0.05)
        await tap.stop()
        return tap

    assert "cannot be reached" in asyncio.run(tapped()).problem


def test_there_is_a_bound_on_taps(monkeypatch):
    monkeypatch.setattr(module, "TAPS_MAX", 0)

    async def tapped() -> EventTap:
        tap = EventTap(BrokerPlace(url="mqtt://127.0.0.1"))
        await tap.start("#", "")
        return tap

    tap = asyncio.run(tapped())
    assert "open taps is reached" in tap.problem
    assert not tap.is_open
