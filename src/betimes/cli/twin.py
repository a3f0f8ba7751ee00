"""`betimes twin`: replay recorded events in a simulated copy of a network, unchanged and changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from betimes.cli.pipeline import WrittenTables
from betimes.model.errors import SettingError, TextError
from betimes.model.subscriptions import Subscription
from betimes.terminal.progress import progress_bar
from betimes.terminal.terminal import (
    JsonOption,
    examples,
    print_facts,
    print_json,
    print_notice,
    print_table,
    spread_text,
)

if TYPE_CHECKING:
    from betimes.pipeline.twin.what_if import TwinAnswer, TwinQuestion

SEEDS, SEEDS_MAX = 5, 1_000
TIMES_MIN, TIMES_MAX = 0.001, 1_000.0
OFF_WELL = 0.05  # a twin with a larger mean error is not trustworthy
SUBSCRIBERS_SHOWN = 40

EXAMPLES = examples(
    "betimes twin --tables out/tables",
    "betimes twin --tables out/tables --rate x1.5",
    "betimes twin --tables out/tables --drop-link 'centre->north' --strategy eb",
    "betimes twin --tables out/tables --add-subscriber \"name = 'ann', broker = 'north', "
    "filter = 'speed > 80', max_delay = '2s', price = 3\"",
)


def twin_command(
    tables: WrittenTables,
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
    from betimes.pipeline.twin.what_if import CANDIDATES, ask

    question = read_question(rate, drop_link or (), add_subscriber or (), strategy)
    if not 1 <= seeds <= SEEDS_MAX:
        raise SettingError("--seeds", seeds, f"must be between 1 and {SEEDS_MAX}")
    candidates = CANDIDATES if current is None else (_known(current, "--current"),)
    with progress_bar(f"simulating {tables}") as advance:
        answer = ask(tables, question, candidates, seeds, advance)
    if as_json:
        print_json(answer.as_json())
    else:
        print_answer(answer)


def read_question(
    rate: str | None, dropped: Sequence[str], subscribers: Sequence[str], strategy: str | None
) -> TwinQuestion:
    """Return the changes that the options describe; a SettingError for a wrong one."""
    from betimes.pipeline.twin.what_if import TwinQuestion

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
    from betimes.language.files.scenario_file import read_subscriber
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


def print_answer(answer: TwinAnswer) -> None:
    """Print tables: the totals, and the subscribers with the largest change."""
    from betimes.pipeline.twin.what_if import WANTED_MIN

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
