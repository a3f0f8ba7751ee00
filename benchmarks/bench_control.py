"""How long after brokers wrote something down do they plan by it? The lag of the continuous control loop.

Four real brokers with rate-limited links, as in bench_promises.py, and `betimes control --stream` at its
usual settings, as a process of its own: each round says how long after the oldest new row was written, or
came over MQTT (`--told`), all brokers had the model. The first rounds, while Java warms up, are told apart.
No peer has such a loop, so there is none to measure beside.
`.venv/bin/python benchmarks/bench_control.py --seconds 120`
`.venv/bin/python benchmarks/bench_control.py --seconds 120 --told`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import statistics
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_promises import BOUNDS_S, BROKERS, PUBLISHERS, network, publish_for_ever, read_for_ever

import betimes
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

SECRET = "the secret of this benchmark"
WARM_AFTER = 2  # rounds
FIRST_ROUND_S_MAX = 180.0


async def rounds_of(plan: FleetPlan, folder: Path, seconds: float, *, told: bool) -> list[dict[str, Any]]:
    """Let clients publish and read; return what each round of the control centre said."""
    url = {name: f"mqtt://{HOST}:{port}" for name, port in plan.ports.items()}
    async with AsyncExitStack() as stack:
        tasks: list[asyncio.Task[None]] = []
        for number, bound_s in enumerate(BOUNDS_S):
            home = ("east", "south")[number % 2]
            client = await stack.enter_async_context(betimes.connect(f"{url[home]}?client_id=s{number}"))
            wish = client.subscribe("news/#", filter=f"level < {4 + number % 3 * 2}", max_delay=bound_s)
            tasks.append(asyncio.create_task(read_for_ever(await stack.enter_async_context(wish))))
        for name, home in PUBLISHERS:
            client = await stack.enter_async_context(betimes.connect(f"{url[home]}?client_id={name}"))
            tasks.append(asyncio.create_task(publish_for_ever(client, name, random.Random(name))))
        command = [
            str(Path(sys.executable).with_name("betimes")),
            "control",
            *url.values(),
            "--stream",
            "--json",
        ]
        command += ["--tables", str(folder / "tables"), "--control-secret", str(folder / "secret")]
        command += [] if told else ["--telemetry", str(folder / "telemetry")]
        control = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            return await _read_rounds(control, seconds)
        finally:
            control.send_signal(signal.SIGINT)
            await control.wait()
            for task in tasks:
                task.cancel()


async def _read_rounds(control: asyncio.subprocess.Process, seconds: float) -> list[dict[str, Any]]:
    assert control.stdout is not None, "it has a pipe"
    rounds: list[dict[str, Any]] = []
    text = b""
    try:
        async with asyncio.timeout(FIRST_ROUND_S_MAX) as limit:
            while line := await control.stdout.readline():
                text += line
                if not line.startswith(b"}"):
                    continue  # a round is an object, over several lines
                if not rounds:
                    limit.reschedule(asyncio.get_running_loop().time() + seconds)
                rounds.append(json.loads(text))
                text = b""
                lag_s = rounds[-1]["lag_s"]
                print(
                    f"round {len(rounds)}: {'nothing new' if lag_s is None else f'{lag_s:.1f} s'}", flush=True
                )
    except TimeoutError:
        pass
    return rounds


def main() -> None:
    """Print the lag of each round."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="from the first round on")
    parser.add_argument("--told", action="store_true", help="telemetry over MQTT instead of files")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no broker is left
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "secret").write_text(SECRET)
        plan = network(free_ports(len(BROKERS)), folder / "telemetry", folder / "secret")
        usual = plan.options[:-2]  # brokers write files as often as they do by themselves
        with Fleet(replace(plan, options=usual)):
            rounds = asyncio.run(rounds_of(plan, folder, options.seconds, told=options.told))
    lags_s = [each["lag_s"] for each in rounds if each["lag_s"] is not None]
    warm = lags_s[WARM_AFTER:]
    if not warm:
        raise SystemExit(f"only {len(lags_s)} rounds learned anything: give it more time")
    print(f"warming up: {', '.join(f'{each:.1f} s' for each in lags_s[:WARM_AFTER])}")
    print(
        f"then {len(warm)} rounds: median {statistics.median(warm):.1f} s, "
        f"{min(warm):.1f} to {max(warm):.1f} s"
    )


if __name__ == "__main__":
    main()
