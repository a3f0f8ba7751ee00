"""How long does a prediction take, and an answer to whoever asks to be let in?

    python benchmarks/bench_prediction.py [--large]

Networks are those of docs/background/on-time-share.md (random trees of brokers that match, four topics,
filters of one or two ranges), with as many parts as each line says. The best of several runs; seconds are
those of the processor, because other programs may compute beside this one. With --large also 200 brokers and
100,000 subscribers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.prediction.admission import Admission
from betimes.prediction.predict import predict

RUNS = 5


def best_s(action: Callable[[], object], runs: int = RUNS) -> float:
    found = []
    for _ in range(runs):
        began_s = time.process_time()
        action()
        found.append(time.process_time() - began_s)
    return min(found)


def predictions() -> None:
    network = paper_network(1)
    for early_drop in (False, True):
        took_s = best_s(partial(predict, network, early_drop=early_drop))
        dropping = "expired dropped" if early_drop else "expired kept"
        print(f"predict, 20 brokers, 100 subscribers, {dropping}: {took_s * 1e3:.0f} ms")


def admissions() -> None:
    network = paper_network(1, brokers=30, subscribers=1020, publishers=20, matching_s_each=0.00005)
    inside, new = network.subscriptions[:1000], network.subscriptions[1000:]
    for early_drop in (False, True):
        admission = Admission(replace(network, subscriptions=inside), early_drop=early_drop)
        took_s = sorted(best_s(partial(admission.consider, each), 3) for each in new)
        dropping = "expired dropped" if early_drop else "expired kept"
        print(
            f"consider, 30 brokers, 1,000 subscriptions, 20 publishers, {dropping}: "
            f"{took_s[len(took_s) // 2] * 1e3:.1f} ms, at most {took_s[-1] * 1e3:.1f} ms"
        )


def large() -> None:
    network = paper_network(
        1, brokers=200, subscribers=100_000, publishers=40, rate_per_s=0.1, matching_s_each=1e-6
    )
    for early_drop in (False, True):
        took_s = best_s(partial(predict, network, early_drop=early_drop), 1)
        dropping = "expired dropped" if early_drop else "expired kept"
        print(f"predict, 200 brokers, 100,000 subscribers, 40 publishers, {dropping}: {took_s:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    predictions()
    admissions()
    if arguments.large:
        large()
