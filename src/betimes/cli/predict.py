"""`betimes predict`: predict the on-time share of each subscriber, and where it loses time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betimes.language.files.scenario_file import read_scenario
from betimes.model.errors import BetimesError, SettingError
from betimes.model.topology import LayeredWorld
from betimes.terminal.files import read_text_file
from betimes.terminal.terminal import JsonOption, examples, print_json, print_notice, print_table

if TYPE_CHECKING:
    from betimes.model.statistics import NetworkStatistics
    from betimes.prediction.forecasts import ForecastModel
    from betimes.prediction.losses import Loss
    from betimes.prediction.predict import Prediction

SUBSCRIBERS_SHOWN, STATIONS_SHOWN = 10, 8
LOSSES_SHOWN = 3
EXPLAINED_MAX = 1000  # with --json: subscribers whose losses are computed

EXAMPLES = examples(
    "betimes predict examples/city.toml",
    "betimes predict examples/city.toml --model gg1 --json",
    "betimes predict examples/paper.toml --seed 7",
    "betimes predict --tables out/tables",
)

ScenarioArgument = Annotated[
    Path | None, typer.Argument(help="The scenario file; or use --tables.", metavar="[TOPOLOGY.toml]")
]
TablesOption = Annotated[
    Path | None,
    typer.Option("--tables", help="The tables that `betimes pipeline run` wrote.", metavar="DIR"),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        help="The model of waiting times: wait (ours: their distribution), or the paper's mm1 and gg1 "
        "(every message waits the mean, and brokers drop nothing).",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", help='The seed of the network, if the file has a table "generate".')
]
KeepOption = Annotated[
    bool,
    typer.Option(
        "--keep-expired", help="Assume brokers that also send expired messages. Betimes drops them."
    ),
]


def predict_command(
    scenario: ScenarioArgument = None,
    tables: TablesOption = None,
    model: ModelOption = "wait",
    seed: SeedOption = 1,
    keep_expired: KeepOption = False,
    as_json: JsonOption = False,
) -> None:
    """Predict the on-time share of each subscriber, without a simulation.

    Use it to size a network. The input is a scenario file, or the tables that the pipeline learned from
    telemetry. The prediction computes the loads of brokers and links from link speeds, publishing rates and
    filters, then waiting times, then the delay distribution of each route. The interval shows the result for
    waiting times a quarter shorter and longer.

    The model assumes first come, first served; docs/background/on-time-share.md gives its error for other
    strategies.
    """
    source, statistics = statistics_from(scenario, tables, seed)
    facts = prediction_facts(statistics, model, early_drop=not keep_expired)
    if as_json:
        print_json({"file": str(source), **facts})
    else:
        print_prediction(f"{source}, model {model}", facts)


def statistics_from(scenario: Path | None, tables: Path | None, seed: int) -> tuple[Path, NetworkStatistics]:
    """Return the statistics to predict from, and their source: the scenario file or the tables."""
    if (scenario is None) == (tables is None):
        hint = "betimes predict examples/city.toml, or betimes predict --tables out/tables"
        problem = "pass a scenario file or --tables" + (", not both" if tables is not None else "")
        raise BetimesError(f"{problem}\nhint: {hint}")
    if scenario is not None:
        return scenario, scenario_numbers(scenario, seed)
    assert tables is not None, "one of the two is named"
    from betimes.pipeline.telemetry.model import learn_statistics

    statistics = learn_statistics(tables)
    if not statistics.publishers or not statistics.subscriptions:
        past = learn_statistics(tables, looks_back=True)
        if past.publishers and past.subscriptions:
            hint = "betimes report and betimes twin also use subscriptions that have ended"
            raise BetimesError(f"{tables}: no subscription is open at the end of the telemetry\nhint: {hint}")
        hint = "record telemetry while clients publish and subscribe, and run betimes pipeline again"
        raise BetimesError(f"{tables}: the telemetry has no publishers or no subscriptions\nhint: {hint}")
    return tables, statistics


def scenario_numbers(scenario: Path, seed: int) -> NetworkStatistics:
    """Return the statistics that a scenario file states."""
    from betimes.prediction.predict import scenario_statistics
    from betimes.simulator.worlds import make_scenario

    if seed < 0:
        raise SettingError("--seed", seed, "must not be negative")
    world = read_scenario(read_text_file(scenario), str(scenario))
    network = make_scenario(world, seed) if isinstance(world, LayeredWorld) else world
    if network.faults:
        print_notice(f"{scenario}: the prediction ignores faults in the file")
    return scenario_statistics(network)


def model_named(name: str) -> ForecastModel:
    """Return the model of waiting times with this name."""
    from betimes.prediction.forecasts import ForecastModel

    if name not in list(ForecastModel):
        raise SettingError("--model", name, "no such model", f"one of {', '.join(ForecastModel)}")
    return ForecastModel(name)


def prediction_facts(statistics: NetworkStatistics, model: str, *, early_drop: bool) -> dict[str, Any]:
    """Return what --json prints."""
    from betimes.prediction.losses import Losses
    from betimes.prediction.predict import Predictor, prediction_of

    chosen = model_named(model)
    predictor = Predictor(statistics)
    forecaster = predictor.forecaster(chosen, early_drop=early_drop)
    forecast = predictor.forecast(forecaster)
    prediction = prediction_of(predictor, forecaster, forecast)
    losses = Losses(predictor, forecaster, forecast)
    order = sorted(range(len(prediction.subscribers)), key=lambda each: prediction.subscribers[each].share)
    explained = {number: losses.of(number) for number in order[:EXPLAINED_MAX]}
    return {
        "model": chosen.value,
        "expired_are_dropped": forecaster.early_drop,
        "subscribers": _subscriber_facts(statistics, prediction, explained),
        "stations": [
            {
                "station": each.name,
                "load": each.load,
                "arrivals_per_s": each.arrivals_per_s,
                "wait_s_mean": each.wait_s_mean,
            }
            for each in prediction.stations
        ],
    }


def _subscriber_facts(
    statistics: NetworkStatistics, prediction: Prediction, explained: dict[int, list[Loss]]
) -> list[dict[str, Any]]:
    return [
        {
            "subscriber": each.subscriber,
            "predicted_share": each.share,
            "low": each.low,
            "high": each.high,
            "asked": statistics.subscriptions[number].qos.reliability,
            "wanted_per_s": each.wanted_per_s,
            "lost_at": [
                {
                    "place": loss.place,
                    "wait_s": loss.wait_s,
                    "taking_s": loss.taking_s,
                    "share_gained_if_instant": loss.share_gained,
                }
                for loss in explained.get(number, [])
            ],
        }
        for number, each in enumerate(prediction.subscribers)
    ]


def print_prediction(title: str, facts: dict[str, Any]) -> None:
    """Print tables: the worst served subscribers, where they lose most, and the busiest stations."""
    worst = sorted(facts["subscribers"], key=lambda each: (each["predicted_share"], each["subscriber"]))
    rows = [
        (
            each["subscriber"],
            f"{each['predicted_share']:.3f}",
            f"{each['low']:.3f} to {each['high']:.3f}",
            each["asked"],
            each["wanted_per_s"],
            lost_text(each["lost_at"]),
        )
        for each in worst[:SUBSCRIBERS_SHOWN]
    ]
    count = len(worst)
    shown = "subscribers" if count <= len(rows) else f"the {len(rows)} worst served of {count} subscribers"
    columns = ["subscriber", "on time", "interval", "asked", "wanted per s", "most time is lost at"]
    print_table(f"{title}: {shown}", columns, rows)
    stations = [
        (each["station"], f"{each['load']:.2f}", each["arrivals_per_s"], f"{each['wait_s_mean']:.3f}")
        for each in facts["stations"][:STATIONS_SHOWN]
    ]
    print_table(
        "the busiest brokers and links", ["where", "load", "arrivals per s", "mean wait (s)"], stations
    )


def lost_text(losses: list[dict[str, Any]]) -> str:
    """Return the places that cost most, as text.

    >>> lost_text([{"place": "a->b", "wait_s": 0.25, "taking_s": 0.5, "share_gained_if_instant": 0.125}])
    'a->b 0.75 s (+12.5 %)'
    """
    parts = [
        f"{each['place']} {each['wait_s'] + each['taking_s']:.2f} s"
        f" (+{100 * each['share_gained_if_instant']:.1f} %)"
        for each in losses[:LOSSES_SHOWN]
        if each["share_gained_if_instant"] >= 0.001
    ]
    return ", ".join(parts) or "-"
