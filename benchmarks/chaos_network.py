"""Does a network of real brokers keep its word while they are killed, stopped, cut off, skewed and filled?

`.venv/bin/python benchmarks/chaos_network.py --brokers 3 --faults 40 --seconds 300` takes six minutes.
The long form is `--brokers 5 --faults 500 --seconds 3600 --rate 300`.

Brokers are processes with stores, in a ring; each link goes through a proxy that delays its bytes. Publishers
of QoS 0, 1 and 2, and durable, semi-durable and plain subscribers roam between them. The nemesis kills (-9),
stops (SIGSTOP), restarts gracefully, cuts and delays links in one or both directions, sets clocks wrong
(libfaketime, where it is installed), lets disks be full (no file may grow), and reloads (SIGHUP).

A run has rounds: after each, everything has 30 s to heal, and the checker (`tests/chaos/checker.py`) decides
from what the clients wrote down, and from memory, exit codes, `/healthz` and `/readyz` of the brokers. Exit
code 1: something that was promised was broken. All that is started ends with the run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import sys
import time
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # clients and checker are those of the tests

from tests.chaos.live import LivePlan, run_live, total


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--brokers", type=int, default=3, help="in a ring (default: 3)")
    parser.add_argument("--faults", type=int, default=40, help="in all (default: 40)")
    parser.add_argument("--seconds", type=float, default=300.0, help="with faults (default: 300)")
    parser.add_argument("--rate", type=float, default=300.0, help="publications a second (default: 300)")
    parser.add_argument("--rounds", type=int, help="default: one for every 300 s")
    parser.add_argument("--memory", type=float, default=700.0, help="MB of each broker (default: 700)")
    parser.add_argument("--seed", type=int, default=0, help="of clients and faults (default: 0)")
    parser.add_argument("--trace", type=Path, help="file for all that happens, to look for a fault")
    given = parser.parse_args()
    plan = LivePlan(
        brokers=given.brokers,
        faults=given.faults,
        seconds=given.seconds,
        rate_per_s=given.rate,
        publishers=10,
        memory_mb_max=given.memory,
        seed=given.seed,
        trace=given.trace,
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell ignores it
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    began_s = time.monotonic()
    rounds = given.rounds or max(round(given.seconds / 300.0), 1)
    work = run_live(plan, rounds=rounds, tell=lambda text: print(text, flush=True))
    try:
        verdicts = asyncio.Runner(loop_factory=uvloop.new_event_loop).run(work)
    except KeyboardInterrupt:
        return 130
    cpu_s = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{cpu_s / (time.monotonic() - began_s):.2f} cores were busy with brokers, proxies and clients")
    print(total(verdicts))
    for verdict in verdicts:
        for each in verdict.violations:
            print(each)
    return 0 if all(each.is_good for each in verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
