"""How long does an overlay of very many simulated peers take, and how much memory (002, beyond figure 5 h)?

`.venv/bin/python benchmarks/many_peers.py --peers 50000`: until 99 % of the subscribers get every event they
want in time, or so many cycles are over. One process, one core; a line for each tenth cycle.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

from betimes.experiments.figure import FigurePlan
from betimes.experiments.tariq.peers import BUILT, OURS, PROTOCOLS, PaperOverlay, run_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=int, default=7_000)
    parser.add_argument("--cycles", type=int, default=60, help="at most")
    parser.add_argument("--protocol", choices=PROTOCOLS, default=OURS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    row = run_of(FigurePlan(seeds=(options.seed,)), options.seed, options.protocol, peers=options.peers)
    began_s = time.process_time()
    overlay = PaperOverlay(row)
    for cycle in range(1, options.cycles + 1):
        overlay.cycle(cycle, 0.0)
        if cycle % 10 == 0 or overlay.notified >= BUILT:
            seen = {
                "cycle": cycle,
                "notified": round(overlay.notified, 4),
                "cpu_s": round(time.process_time() - began_s, 1),
                "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
            print(json.dumps(seen), flush=True)
        if overlay.notified >= BUILT:
            break


if __name__ == "__main__":
    main()
