"""Does a network of brokers keep its word under random faults? Thousands of schedules in virtual time.

`.venv/bin/python benchmarks/chaos_simulated.py --schedules 500` runs the seeds 0 to 499 on two processes,
some 0.4 s of one core each. A seed gives brokers, clients and faults, and always the same run: replay one
that failed with `--seed 137`, which prints its whole verdict and the log of the brokers.

The brokers are the real ones without their sockets, three or five of them in a ring, each with a store that
survives kills. The faults: kill -9 (at once, before a commit, before a write), stop (SIGSTOP), graceful
restart, links that are cut or slow in one or both directions, a clock that is an hour wrong after a restart,
a full disk, a reload. The clients: publishers of QoS 0, 1 and 2; durable, semi-durable and plain subscribers;
all of them roam. The checker (`tests/chaos/checker.py`) knows only what the clients wrote down.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # network and checker are those of the tests

from tests.chaos.checker import Verdict
from tests.chaos.simulated import run_schedule

PROGRESS_S = 10.0
FIVE_EVERY = 10  # every tenth schedule is of five brokers
Outcome = tuple[int, bool, str, Counter[str], int, int]


def verdict_of(seed: int) -> Verdict:
    """Run the schedule of a seed; which kind of network it is for follows from the seed."""
    is_large = seed % FIVE_EVERY == FIVE_EVERY - 1
    return run_schedule(seed, brokers=5, faults=12) if is_large else run_schedule(seed)


def outcome_of(seed: int) -> Outcome:
    """Run one schedule; a crash of a broker is a violation like any other."""
    try:
        verdict = verdict_of(seed)
    except Exception:  # noqa: BLE001 -- whatever a broker raises is found here
        return seed, False, traceback.format_exc(), Counter(), 0, 0
    return (
        seed,
        verdict.is_good,
        str(verdict),
        verdict.faults,
        verdict.acknowledged,
        verdict.deliveries,
    )


def _begin_process() -> None:
    logging.disable(logging.CRITICAL)
    os.nice(10)


def run_many(first: int, count: int, processes: int) -> int:
    """Run so many schedules, print what comes of them, and return how many were violated."""
    faults, bad, done, acknowledged, deliveries = Counter[str](), list[int](), 0, 0, 0
    began_s = told_s = time.monotonic()
    with multiprocessing.Pool(processes, initializer=_begin_process) as pool:
        for seed, is_good, text, kinds, got_acknowledged, got in pool.imap_unordered(
            outcome_of, range(first, first + count), chunksize=4
        ):
            done += 1
            faults += kinds
            acknowledged += got_acknowledged
            deliveries += got
            if not is_good:
                bad.append(seed)
                print(f"seed {seed}: {text}", flush=True)
            if time.monotonic() - told_s > PROGRESS_S:
                told_s = time.monotonic()
                left_s = (told_s - began_s) / done * (count - done)
                print(
                    f"{done} of {count} schedules, {len(bad)} violated, {left_s / 60:.0f} min left",
                    flush=True,
                )
    kinds_text = ", ".join(f"{number} {kind}" for kind, number in sorted(faults.items()))
    print(f"{done} schedules in {(time.monotonic() - began_s) / 60:.1f} min; faults: {kinds_text}")
    print(f"{acknowledged} acknowledged publications, {deliveries} deliveries")
    print(f"violated: {', '.join(map(str, sorted(bad)))}" if bad else "no violation")
    return len(bad)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=500, help="how many (default: 500)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--processes", type=int, default=2, help="at once (default: 2)")
    parser.add_argument("--seed", type=int, help="replay this schedule alone, with the log of its brokers")
    given = parser.parse_args()
    if given.seed is None:
        return 1 if run_many(given.first, given.schedules, given.processes) else 0
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    verdict = verdict_of(given.seed)
    print(verdict)
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
