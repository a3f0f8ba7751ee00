"""`betimes check`: validate a scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from betimes.language.files.scenario_file import read_scenario
from betimes.model.topology import LayeredWorld, Scenario
from betimes.terminal.files import read_text_file
from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json

EXAMPLES = examples(
    "betimes check examples/city.toml",
    "betimes check examples/city.toml --json",
)


def check_command(
    scenario: Annotated[Path, typer.Argument(help="The scenario file.", metavar="SCENARIO.toml")],
    as_json: JsonOption = False,
) -> None:
    """Check a scenario file: list every mistake in it, or summarise the network.

    Use it after you edit a file and before a long simulation.
    """
    from betimes.simulator.worlds import check_amount

    world = read_scenario(read_text_file(scenario), str(scenario))
    check_amount(world)
    facts = scenario_facts(world)
    if as_json:
        print_json({"file": str(scenario), "valid": True, **facts})
    else:
        print_facts(f"{scenario} is valid", facts)


def scenario_facts(world: Scenario | LayeredWorld) -> dict[str, object]:
    """Return the sizes of a scenario, or of the recipe for one."""
    if isinstance(world, Scenario):
        return {
            "name": world.name,
            "kind": "network",
            "duration_s": world.duration_s,
            "brokers": len(world.brokers),
            "links": len(world.links),
            "publishers": len(world.publishers),
            "subscribers": len(world.subscriptions),
            "faults": len(world.faults),
            "published_per_s": sum(publisher.rate_per_s for publisher in world.publishers),
        }
    return {
        "name": world.name,
        "kind": "recipe: a seed generates the network",
        "duration_s": world.duration_s,
        "brokers": sum(world.layers),
        "layers": "-".join(str(size) for size in world.layers),
        "publishers": world.layers[0],
        "subscribers": world.layers[-1] * world.subscribers_per_broker,
        "faults": len(world.faults),
        "published_per_s": world.layers[0] * world.publisher_rate_per_s,
    }
