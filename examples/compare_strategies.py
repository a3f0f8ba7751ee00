"""Which strategy serves a network best? The city at rush hour under three of them, with the same luck."""

from dataclasses import replace
from pathlib import Path

from betimes.language.files.scenario_file import read_scenario
from betimes.model.topology import Scenario
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import SimulatedNetwork

SCENARIO = Path(__file__).with_name("city.toml")

scenario = read_scenario(SCENARIO.read_text(), SCENARIO.name)
assert isinstance(scenario, Scenario)  # written out, not a recipe that still needs a seed

# rush hour: everybody publishes five times as often, and the links are too slow for all of it
busy = tuple(replace(each, rate_per_s=5 * each.rate_per_s) for each in scenario.publishers)
rush_hour = replace(scenario, publishers=busy)

for name in ("fifo", "eb", "late-binding"):
    outcome = SimulatedNetwork(rush_hour, strategy_named(name), seed=1).run()
    drops = ", ".join(f"{count} {reason}" for reason, count in sorted(outcome.drops.items())) or "nothing"
    print(f"{name}: {outcome.in_time} of {outcome.wanted} in time; dropped: {drops}")
