"""Do overlays of peers keep what they must, whatever happens (002)? Many seeds, with churn and lost messages.

Every trial: 40 subscribers and 8 publishers, 25 cycles in which a fiftieth of the subscribers is replaced
and a tenth of all messages is lost; then it is quiet, the overlay settles, and an event in each of 512 parts
of the space must reach everybody who wants it, once, with no place given twice and nobody over its budget.
Who found no place misses something; anything else that is wrong is a violation, and ends it with 1.
`.venv/bin/python benchmarks/peer_trials.py --seeds 500`
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.progress import track

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the trials are those of the tests

from tests.oracles.peer_trials import Faults, Trial

from betimes.peers.settings import our_settings, paper_settings

PROTOCOLS = {"paper": paper_settings, "ours": our_settings}


def trial(protocol: str, allowed: float, seed: int) -> Faults:
    return Trial(PROTOCOLS[protocol](6, allowed, 4), seed).faults()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument(
        "--allowed", type=float, default=1.0, help="false positives, as a share of all events"
    )
    parser.add_argument("--protocol", choices=list(PROTOCOLS), help="only this one")
    parser.add_argument("--processes", type=int, help="so many at a time; unless told, one for each core")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, dict[str, int]] = {}
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor(options.processes) as pool:
        for protocol in [options.protocol] if options.protocol else PROTOCOLS:
            totals: Counter[str] = Counter()
            runs = pool.map(partial(trial, protocol, options.allowed), seeds, chunksize=4)
            for seed, faults in zip(seeds, track(runs, protocol, total=len(seeds)), strict=True):
                totals.update({name: count for name, count in asdict(faults).items() if count})
                totals["trials with a fault"] += faults.any
                totals["trials in which somebody found no place"] += faults.unsettled > 0
                totals["trials with a violation"] += faults.violation
                if faults.any and not options.json:
                    print(protocol, seed, faults)
            found[protocol] = dict(totals)
    print(json.dumps(found, indent=2))
    raise SystemExit(any(totals["trials with a violation"] for totals in found.values()))


if __name__ == "__main__":
    main()
