"""`betimes simulate`: one simulation of a scenario file."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betimes.language.files.scenario_file import read_scenario
from betimes.language.quantities import show_duration, show_rate
from betimes.model.errors import SettingError
from betimes.model.topology import LayeredWorld, Scenario
from betimes.terminal.files import read_text_file
from betimes.terminal.progress import Advance, progress_bar
from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json, print_table

if TYPE_CHECKING:
    from betimes.simulator.network import Outcome
    from betimes.simulator.reservations import GuaranteedSubscriber

SUBSCRIBERS_SHOWN = 10
TOTALS = (
    "delivery_rate",
    "earning",
    "messages",
    "published",
    "wanted",
    "in_time",
    "out_of_order",
    "age_s_mean",
)
COLUMNS = ("subscriber", "wanted", "in_time", "on_time_share", "earning")

EXAMPLES = examples(
    "betimes simulate examples/city.toml --strategy eb --seed 3",
    "betimes simulate examples/city.toml --strategy fifo --json",
    "betimes simulate examples/city.toml --telemetry out/city",
)


def simulate_command(
    scenario: Annotated[Path, typer.Argument(help="The scenario file.", metavar="SCENARIO.toml")],
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help="The scheduling strategy: fifo, rl, eb, pc, ebpc:0.5, and our own look-ahead, late-binding.",
        ),
    ] = "late-binding",
    seed: Annotated[int, typer.Option("--seed", help="The seed of all random numbers.")] = 1,
    duration_s: Annotated[
        float | None, typer.Option("--duration", help="Seconds to publish, in place of the file's.")
    ] = None,
    telemetry: Annotated[
        Path | None, typer.Option("--telemetry", help="Write the telemetry of every broker here, as Parquet.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a network: on-time share, earning, and dropped messages by reason.

    Use it to compare strategies and networks before you run brokers. The same file and seed give the same
    numbers.
    """
    world = read_scenario(read_text_file(scenario), str(scenario))
    if duration_s is not None:
        world = with_duration(world, duration_s)
    with progress_bar(f"simulating {scenario}") as advance:
        outcome = simulate(world, strategy, seed, telemetry, advance)
    facts = outcome_facts(outcome) | {"strategy": strategy, "seed": seed}
    if as_json:
        print_json(facts)
    else:
        print_outcome(f"{scenario}, strategy {strategy}, seed {seed}", facts)


def simulate(
    world: Scenario | LayeredWorld,
    strategy: str,
    seed: int,
    telemetry: Path | None = None,
    progress: Advance | None = None,
) -> Outcome:
    """Run a scenario, or the one that a recipe and the seed generate."""
    from betimes.scheduling.strategies import strategy_named
    from betimes.simulator.network import SimulatedNetwork
    from betimes.simulator.worlds import make_scenario
    from betimes.telemetry.files import TelemetryWriter

    if seed < 0:
        raise SettingError("--seed", seed, "must not be negative")
    chosen = strategy_named(strategy)
    scenario = make_scenario(world, seed) if isinstance(world, LayeredWorld) else world
    with TelemetryWriter(telemetry) if telemetry is not None else nullcontext() as writer:
        return SimulatedNetwork(scenario, chosen, seed, sink=writer.write if writer else None).run(progress)


def with_duration(world: Scenario | LayeredWorld, duration_s: float) -> Scenario | LayeredWorld:
    """Return the same world with another duration."""
    if not 0 < duration_s < float("inf"):
        raise SettingError("--duration", duration_s, "must be more than 0 seconds", "for example 60")
    return replace(world, duration_s=duration_s)


def outcome_facts(outcome: Outcome) -> dict[str, Any]:
    """Return what --json prints."""
    return {
        **{name: getattr(outcome, name) for name in TOTALS},
        "drops": {reason.value: count for reason, count in sorted(outcome.drops.items())},
        "subscribers": [{name: getattr(each, name) for name in COLUMNS} for each in outcome.subscribers],
        "guarantees": [_guarantee_facts(each) for each in outcome.guarantees],
    }


def _guarantee_facts(guaranteed: GuaranteedSubscriber) -> dict[str, Any]:
    latency_s = guaranteed.latency_s
    return {
        "subscriber": guaranteed.subscriber,
        "accepted": guaranteed.is_accepted,
        "definite": guaranteed.is_definite,
        "reason": guaranteed.reason,
        "why": guaranteed.why,
        "kb_per_s": guaranteed.bytes_per_s / 1000.0,
        "shared": guaranteed.is_shared,
        "latency_s": latency_s if math.isfinite(latency_s) else None,
    }


def _guarantee_row(found: dict[str, Any], share: float) -> list[Any]:
    bandwidth, latency_s = show_rate(found["kb_per_s"]), found["latency_s"]
    away = "" if latency_s is None else show_duration(round(latency_s, 4))
    answer = f"{bandwidth} reserved, {away} away" if found["accepted"] else f"refused: {found['why']}"
    return [found["subscriber"], answer, share]


def print_outcome(title: str, facts: dict[str, Any]) -> None:
    """Print tables: the totals, the drops, and the worst served subscribers."""
    print_facts(title, {name.replace("_", " "): facts[name] for name in TOTALS})
    if facts["drops"]:
        print_table("dropped", ["reason", "subscribers who missed it"], list(facts["drops"].items()))
    shares = {each["subscriber"]: each["on_time_share"] for each in facts["subscribers"]}
    if facts["guarantees"]:
        rows = [_guarantee_row(each, shares[each["subscriber"]]) for each in facts["guarantees"]]
        print_table("guarantees", ["subscriber", "answer", "on time share"], rows[:SUBSCRIBERS_SHOWN])
    worst = sorted(facts["subscribers"], key=lambda each: (each["on_time_share"], each["subscriber"]))
    rows = [[each[column] for column in COLUMNS] for each in worst[:SUBSCRIBERS_SHOWN]]
    shown = (
        "subscribers"
        if len(worst) <= len(rows)
        else f"the {len(rows)} worst served of {len(worst)} subscribers"
    )
    print_table(shown, [column.replace("_", " ") for column in COLUMNS], rows)
