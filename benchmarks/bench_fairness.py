"""How much of a user's on-time share can a flood of other clients take? Alone and beside it, in one run.

Two live brokers, a link of 20 KB/s. A user gets two messages of 1 KB a second over it with a bound of 1 s,
which is a tenth of the link. Then other clients want 600 KB/s over the same link: anonymous ones, and a user
whose account has little money, or no bound on money, at the highest price.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from mqtt_brokers import free_port
from rich.console import Console
from rich.table import Table

import betimes
from betimes.broker.access.passwords import Cost, PasswordFile

TOPOLOGY = """
name = "fairness"
[[brokers]]
name = "a"
[[brokers]]
name = "b"
[[links]]
from = "a"
to = "b"
rate = "20KB/s"
both_ways = true
"""
ACCOUNTS = """
[users.flooding]
money = 5
"""
MESSAGE = b"." * 1000
BOUND = "1s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    name: str
    flood_user: str | None  # None: anonymous
    flood_price: float
    has_accounts: bool = True


TRIALS = (
    Trial(name="anonymous clients, without a price", flood_user=None, flood_price=1.0),
    Trial(name="anonymous clients, at the highest price granted", flood_user=None, flood_price=0.01),
    Trial(name="a user with 5 money a second, at price 100", flood_user="flooding", flood_price=100.0),
    Trial(
        name="for comparison: a user without a bound on money, at price 100",
        flood_user="flooding",
        flood_price=100.0,
        has_accounts=False,
    ),
)


@contextlib.asynccontextmanager
async def network(folder: Path, *, has_accounts: bool) -> AsyncIterator[tuple[str, str]]:
    """Run both brokers; yield their addresses."""
    port = free_port()
    (folder / "network.toml").write_text(TOPOLOGY)
    (folder / "accounts.toml").write_text(ACCOUNTS if has_accounts else "")
    users = PasswordFile()
    for user in ("ann", "flooding"):
        users = users.with_user(user, b"secret", Cost(ln=10))
    (folder / "passwords").write_text(users.text())
    betimes_command = str(Path(sys.executable).with_name("betimes"))
    command = [betimes_command, "network", str(folder / "network.toml"), "--port", str(port)]
    command += ["--anonymous", "--passwords", str(folder / "passwords")]
    command += ["--accounts", str(folder / "accounts.toml")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for each in (port, port + 1):
            await until_it_listens(each)
        yield f"mqtt://127.0.0.1:{port}", f"mqtt://127.0.0.1:{port + 1}"
    finally:
        process.terminate()
        process.wait(20)


async def until_it_listens(port: int, within_s: float = 60.0) -> None:
    end_s = time.monotonic() + within_s
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"nothing listens at {port}")


async def count_in_time(subscription: betimes.Subscription, counts: list[int]) -> None:
    async for _ in subscription:
        counts[0] += 1


async def measure(trial: Trial, *, is_flooded: bool, seconds: float) -> tuple[int, int, int]:
    """Return what the user got in time, what was published for it, and what the flood got."""
    flood_login = None if trial.flood_user is None else "secret"
    got, flooded = [0], [0]
    with tempfile.TemporaryDirectory() as name:
        async with (
            contextlib.AsyncExitStack() as stack,
            network(Path(name), has_accounts=trial.has_accounts) as (near, far),
            betimes.connect(near, user="ann", password="secret") as sender,
            betimes.connect(near, user=trial.flood_user, password=flood_login) as flood_sender,
            betimes.connect(far, user="ann", password="secret") as receiver,
            betimes.connect(far, user=trial.flood_user, password=flood_login) as flood_receiver,
            receiver.subscribe("alerts", max_delay=BOUND, price=1.0) as alerts,
        ):
            tasks = [asyncio.create_task(count_in_time(alerts, got))]
            if is_flooded:
                wanted = flood_receiver.subscribe("flood", max_delay=BOUND, price=trial.flood_price)
                flood = await stack.enter_async_context(wanted)
                tasks.append(asyncio.create_task(count_in_time(flood, flooded)))
            await asyncio.sleep(3.0)
            warm_up_s = 10.0 if is_flooded else 2.0  # in which prices settle
            end_s, counted, sent = time.monotonic() + warm_up_s + seconds, False, 0
            number = 0
            while (now_s := time.monotonic()) < end_s:
                if not counted and now_s > end_s - seconds:
                    await asyncio.sleep(1.5)
                    counted, sent, got[0], flooded[0] = True, 0, 0, 0
                if number % 10 == 0:
                    await sender.publish("alerts", MESSAGE)
                    sent += 1
                for _ in range(30 if is_flooded else 0):
                    await flood_sender.publish("flood", MESSAGE)
                number += 1
                await asyncio.sleep(max(0.05 - (time.monotonic() - now_s), 0.0))
            await asyncio.sleep(2.0)
            for task in tasks:
                task.cancel()
    return got[0], sent, flooded[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each trial measures")
    options = parser.parse_args()
    table = Table("flood by", "user alone", "user beside the flood", "flood delivered")
    console = Console()
    for trial in TRIALS:
        alone, alone_sent, _ = asyncio.run(measure(trial, is_flooded=False, seconds=options.seconds))
        got, sent, flooded = asyncio.run(measure(trial, is_flooded=True, seconds=options.seconds))
        table.add_row(trial.name, f"{alone} of {alone_sent}", f"{got} of {sent}", f"{flooded:,}")
        console.print(f"{trial.name}: {alone} of {alone_sent} alone, {got} of {sent} beside the flood")
    console.print(table)


if __name__ == "__main__":
    main()
