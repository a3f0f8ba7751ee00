"""Does the control centre hear what live brokers write down, also after they were away?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import betimes
from betimes.client.addresses import read_address
from betimes.control.stream import TelemetryTap
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

pytestmark = pytest.mark.live
WITHIN_S = 60.0


def until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


async def publish(port: int, count: int) -> None:
    async with betimes.connect(f"mqtt://{HOST}:{port}") as client:
        for _ in range(count):
            await client.publish("news", b"x", qos=1)


def test_what_a_broker_writes_down_comes_and_again_after_its_restart(tmp_path, capsys):
    (port,) = free_ports(1)
    plan = FleetPlan(
        ports={"a": port},
        links=(),
        settings={"anonymous": True},
        options=("--telemetry", str(tmp_path / "own"), "--telemetry-share", "1"),
    )
    place = tmp_path / "told"
    with TelemetryTap([read_address(f"mqtt://{HOST}:{port}?client_id=centre")], place):
        until(lambda: "no telemetry from" in capsys.readouterr().err)  # nobody is there yet
        for life in (1, 2):
            with Fleet(plan):
                until(lambda: heard(place, "subscribed") >= life)  # noqa: B023 -- called at once
                asyncio.run(publish(port, 5))
                until(lambda: heard(place, "published") >= 5 * life)  # noqa: B023
    assert heard(place, "published") == 10
    assert (place / "_unfinished-a").exists()


def heard(place: Path, kind: str) -> int:
    """Return how many records of a kind have come."""
    return sum(pq.read_metadata(file).num_rows for file in (place / kind).glob("part-*.parquet"))
