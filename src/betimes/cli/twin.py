"""`betimes twin`: replay recorded events in a simulated copy of a network, unchanged and changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betimes.model.errors import SettingError, TextError
from betimes.model.subscriptions import Subscription
from betimes.terminal.progress import Advance, progress_bar, waiting
from betimes.terminal.terminal import (
    JsonOption,
    print_facts,
    print_json,
    print_notice,
    print_table,
    spread_text,
)

if TYPE_CHECKING:
    from betimes.simulator.traces import Spread, Spreads, Twin

SEEDS, SEEDS_MAX = 5, 1_000
TIMES_MIN, TIMES_MAX = 0.001, 1_000.0
CANDIDATES = ("late-binding", "look-ahead", "eb", "fifo")  # strategies that the brokers may have run
OFF_WELL = 0.05  # a twin with a larger mean error is not trustworthy
SUBSCRIBERS_SHOWN = 40
WANTED_MIN = 30  # messages: a share of fewer is noise (alarms.ROWS_MIN)

EXAMPLES = """\
[bold]Examples[/bold]

betimes twin --tables out/tables

betimes twin --tables out/tables --rate x1.5

betimes twin --tables out/tables --drop-link 'centre->north' --strategy eb

betimes twin --tables out/tables --add-subscriber "name = 'ann', broker = 'north', filter = 'speed > 80', \
max_delay = '2s', price = 3"
"""


def twin_command(
    tables: Annotated[
        Path,
        typer.Option("--tables", help="The tables that `betimes pipeline run` wrote.", metavar="DIR"),
    ],
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            help="Publish the same events this many times as fast.",
            metavar="x1.5",
        ),
    ] = None,
    drop_link: Annotated[
        list[str] | None,
        typer.Option("--drop-link", help="Remove a link, in both directions.", metavar="A->B"),
    ] = None,
    add_subscriber: Annotated[
        list[str] | None,
        typer.Option(
            "--add-subscriber",
            help="Add a subscriber: name, broker; as in a scenario file: filter, max_delay, price, topic.",
            metavar="KEYS",
        ),
    ] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", help="Change the strategy of all brokers: fifo, eb, …")
    ] = None,
    current: Annotated[
        str | None,
        typer.Option(
            "--current",
            help="The strategy in the telemetry. Default: the one that fits best.",
            metavar="NAME",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds to simulate.")] = SEEDS,
    as_json: JsonOption = False,
) -> None:
    """Simulate a change of a live network: on-time shares and earning, before and after.

    Use it before you change a network: other rates, a link less, one subscriber more, another strategy. The
    twin has the links, subscribers and events of the telemetry. The command first replays them unchanged and
    compares the result with the measured shares, then with your changes.
    """
    question = read_question(rate, drop_link or (), add_subscriber or (), strategy)
    if not 1 <= seeds <= SEEDS_MAX:
        raise SettingError("--seeds", seeds, f"must be between 1 and {SEEDS_MAX}")
    candidates = CANDIDATES if current is None else (_known(current, "--current"),)
    answer = ask(tables, question, candidates, seeds)
    if as_json:
        print_json(answer.as_json())
    else:
        print_answer(answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinQuestion:
    """The changes to simulate."""

    times_faster: float = 1.0
    dropped_links: tuple[str, ...] = ()
    subscribers: tuple[Subscription, ...] = ()
    strategy: str | None = None

    @property
    def is_change(self) -> bool:
        """Return whether there is any change."""
        return self != TwinQuestion()


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinAnswer:
    """The measured shares, the twin's shares without changes, and its shares with the changes."""

    strategy: str  # named by the user, or the one that fits best
    fits: Mapping[str, float]  # mean error of each candidate in one run; empty if one was named
    off_mean: float | None  # error of on-time shares, over subscribers
    off_max: float | None
    measured: Mapping[str, float]  # by subscription
    wanted: Mapping[str, float]  # by subscription: the number of messages behind that share
    before: Spreads
    after: Spreads | None
    assumed_links: tuple[str, ...]  # links without measurements

    @property
    def few(self) -> frozenset[str]:
        """Return the subscriptions with too few messages for a reliable share."""
        return frozenset(self.measured) - frozenset(telling(self.measured, self.wanted))

    def as_json(self) -> dict[str, Any]:
        """Return what --json prints."""
        names = list((self.after or self.before).subscribers)
        return {
            "current_strategy": self.strategy,
            "fits": dict(self.fits),
            "off_mean": self.off_mean,
            "off_max": self.off_max,
            "assumed_links": list(self.assumed_links),
            "before": _totals(self.before),
            "after": None if self.after is None else _totals(self.after),
            "subscribers": [
                {
                    "subscriber": name,
                    "measured": self.measured.get(name),
                    "wanted": self.wanted.get(name),
                    "before": _pair(self.before.subscribers.get(name)),
                    "after": None if self.after is None else _pair(self.after.subscribers.get(name)),
                }
                for name in names
            ],
        }


def read_question(
    rate: str | None, dropped: Sequence[str], subscribers: Sequence[str], strategy: str | None
) -> TwinQuestion:
    """Return the changes that the options describe; a SettingError for a wrong one."""
    return TwinQuestion(
        times_faster=1.0 if rate is None else times(rate),
        dropped_links=tuple(dropped),
        subscribers=tuple(_subscriber(text) for text in subscribers),
        strategy=None if strategy is None else _known(strategy, "--strategy"),
    )


def times(text: str) -> float:
    """Return the factor that `--rate` gives.

    >>> times("x1.5"), times("2")
    (1.5, 2.0)
    """
    try:
        found = float(text.strip().removeprefix("x"))
    except ValueError:
        raise SettingError("--rate", text, "is not a factor", "for example x1.5") from None
    if not math.isfinite(found) or not TIMES_MIN <= found <= TIMES_MAX:
        raise SettingError("--rate", text, f"must be between x{TIMES_MIN:g} and x{TIMES_MAX:g}")
    return found


def _subscriber(text: str) -> Subscription:
    from betimes.language.files.subscriber_line import read_subscriber
    from betimes.matching.topics import check_topic_pattern

    found = read_subscriber(text, "--add-subscriber")
    try:
        check_topic_pattern(found.pattern)
    except TextError as error:
        raise SettingError("--add-subscriber: topic", found.pattern, error.problem, error.hint) from None
    return found


def _known(strategy: str, option: str) -> str:
    from betimes.scheduling.strategies import strategy_named

    try:
        strategy_named(strategy)
    except SettingError as error:
        raise SettingError(option, strategy, error.problem, error.hint) from None
    return strategy


def ask(tables: Path, question: TwinQuestion, candidates: Sequence[str], seeds: int) -> TwinAnswer:
    """Fit a twin to tables, and simulate it without and with the changes."""
    from betimes.pipeline.twin.twin import measured_on_time, twin_of

    with waiting(f"reading {tables}"):
        twin = twin_of(tables)
        found = measured_on_time(tables)
        measured = _by_subscription(twin, {person: each.on_time_share for person, each in found.items()})
        wanted = _by_subscription(twin, {person: each.wanted for person, each in found.items()})
    changed, assumed = _changed(twin, question)
    count = len(candidates) * (len(candidates) > 1) + seeds * (1 + question.is_change)
    with progress_bar("simulating") as advance:
        player = _Player(advance, count)
        judged = telling(measured, wanted)
        fits = _fits(player, twin, candidates, judged)
        strategy = min(candidates, key=lambda name: fits.get(name, 0.0))
        before = player.play(twin, strategy, seeds)
        after = player.play(changed, question.strategy or strategy, seeds) if question.is_change else None
    off = [abs(before.subscribers[name][0] - share) for name, share in judged.items()]
    return TwinAnswer(
        strategy=strategy,
        fits=fits,
        off_mean=sum(off) / len(off) if off else None,
        off_max=max(off, default=None),
        measured=measured,
        wanted=wanted,
        before=before,
        after=after,
        assumed_links=assumed,
    )


def telling(measured: Mapping[str, float], wanted: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of subscribers with enough messages; all shares, if no subscriber has enough.

    >>> telling({"ann": 0.5, "probe": 1.0}, {"ann": 40, "probe": 2}), telling({"probe": 1.0}, {"probe": 2})
    ({'ann': 0.5}, {'probe': 1.0})
    """
    enough = {name: share for name, share in measured.items() if wanted[name] >= WANTED_MIN}
    return enough or dict(measured)


def _by_subscription(twin: Twin, measured: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return measured values by subscription; a subscriber with several subscriptions is left out."""
    from betimes.model.statistics import subscriber_of

    people = [(subscriber_of(each), each.home) for each in twin.scenario.subscriptions]
    return {
        each.id: measured[person]
        for each, person in zip(twin.scenario.subscriptions, people, strict=True)
        if person in measured and people.count(person) == 1
    }


def _changed(twin: Twin, question: TwinQuestion) -> tuple[Twin, tuple[str, ...]]:
    from betimes.pipeline.twin.twin import both_ways

    assumed: tuple[str, ...] = ()
    if question.dropped_links or question.subscribers:
        twin, assumed = both_ways(twin)  # a change may need a direction that carried nothing before
    for name in question.dropped_links:
        twin = twin.without_link(name)
    for subscription in question.subscribers:
        twin = twin.with_subscription(subscription)
    return twin.faster(question.times_faster), assumed


class _Player:
    """Simulates twins and reports progress."""

    def __init__(self, advance: Advance, count: int) -> None:
        self._advance = advance
        self._count = count
        self._done = 0

    def play(self, twin: Twin, strategy: str, seeds: int) -> Spreads:
        from betimes.scheduling.strategies import strategy_named
        from betimes.simulator.traces import play, spreads

        outcomes = []
        for seed in range(1, seeds + 1):
            outcomes.append(play(twin, strategy_named(strategy), seed))
            self._done += 1
            self._advance(self._done, self._count)
        return spreads(outcomes)


def _fits(
    player: _Player, twin: Twin, candidates: Sequence[str], measured: Mapping[str, float]
) -> dict[str, float]:
    """Return the mean error of the twin under each strategy; nothing if there is one candidate."""
    off: dict[str, float] = {}
    if len(candidates) > 1:
        for name in candidates:
            shares = player.play(twin, name, 1).subscribers
            apart = [abs(shares[each][0] - share) for each, share in measured.items()]
            off[name] = sum(apart) / len(apart) if apart else 0.0
    return off


def _totals(spreads: Spreads) -> dict[str, Any]:
    return {
        "on_time_share": _pair(spreads.on_time_share),
        "earning": _pair(spreads.earning),
        "messages": _pair(spreads.messages),
    }


def _pair(spread: Spread | None) -> dict[str, float | None] | None:
    return None if spread is None else {"mean": spread[0], "sd": spread[1]}


def print_answer(answer: TwinAnswer) -> None:
    """Print tables: the totals, and the subscribers with the largest change."""
    runs = {"before": answer.before} | ({} if answer.after is None else {"after": answer.after})
    rows = [
        (name, *(spread_text(*each) for each in (run.on_time_share, run.earning, run.messages)))
        for name, run in runs.items()
    ]
    print_table("the twin", ["", "on-time share", "earning", "messages"], rows)
    few = answer.few
    listed = [name for name in (answer.after or answer.before).subscribers if name not in few]
    names = sorted(listed, key=lambda name: -_change(answer, name))
    table = [
        (
            name,
            answer.measured.get(name),
            *(
                spread_text(*run.subscribers[name]) if name in run.subscribers else "-"
                for run in runs.values()
            ),
        )
        for name in names[:SUBSCRIBERS_SHOWN]
    ]
    shown = "on time, by subscriber"
    if len(names) > SUBSCRIBERS_SHOWN:
        shown += f": the {SUBSCRIBERS_SHOWN} of {len(names)} with the largest change"
    print_table(shown, ["subscriber", "measured", *runs], table)
    if answer.off_mean is not None and answer.off_max is not None:
        off = f"{answer.off_mean:.3f} on average, {answer.off_max:.3f} at most"
        print_facts("", {**_simulated_under(answer), "error of the twin": off})
        if answer.off_mean > OFF_WELL:
            print_notice("this error is large: the telemetry does not describe the network well")
    if few:
        count = "1 subscriber" if len(few) == 1 else f"{len(few)} subscribers"
        print_notice(f"{count} with fewer than {WANTED_MIN} messages left out; --json shows them")
    for name in answer.assumed_links:
        print_notice(f"{name} carried nothing; the twin assumes the speed of the other direction")


def _simulated_under(answer: TwinAnswer) -> dict[str, str]:
    """Return the strategy that was simulated: telemetry does not record it, and several may fit equally."""
    if not answer.fits:
        return {"strategy": f"{answer.strategy}, from --current"}
    fits = sorted(answer.fits.items(), key=lambda pair: pair[1])
    return {
        "strategy": f"{answer.strategy}, the best fit: a guess unless you pass --current",
        "error of each, one run": ", ".join(f"{name} {off:.3f}" for name, off in fits),
    }


def _change(answer: TwinAnswer, name: str) -> float:
    if answer.after is None or name not in answer.before.subscribers:
        return math.inf if answer.after is not None else 0.0
    return abs(answer.after.subscribers[name][0] - answer.before.subscribers[name][0])
