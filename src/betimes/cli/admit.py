"""`betimes admit`: decide which subscribers a network can serve with the on-time share they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from betimes.cli.predict import (
    KeepOption,
    ModelOption,
    ScenarioArgument,
    SeedOption,
    TablesOption,
    model_named,
    statistics_from,
)
from betimes.model.errors import BetimesError, SettingError
from betimes.terminal.terminal import JsonOption, examples, print_json, print_table

if TYPE_CHECKING:
    from betimes.model.statistics import NetworkStatistics
    from betimes.prediction.admission_policies import Settings

CANDIDATES_MAX = 2000

EXAMPLES = examples(
    "betimes admit examples/city.toml",
    "betimes admit examples/city.toml --policy low-req-first --margin 0.02",
    "betimes admit examples/city.toml --json",
    "betimes admit --tables out/tables",
)


def admit_command(
    scenario: ScenarioArgument = None,
    tables: TablesOption = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            help="reverse-greedy (ours), the paper's random (in the order of the file), hi-req-first, "
            "low-req-first and overlap-first, optimum (up to 14 subscribers), or none.",
        ),
    ] = "reverse-greedy",
    margin: Annotated[
        float, typer.Option("--margin", help="By how much a predicted share must exceed the requested one.")
    ] = 0.0,
    model: ModelOption = "wait",
    seed: SeedOption = 1,
    keep_expired: KeepOption = False,
    as_json: JsonOption = False,
) -> None:
    """Choose the subscribers to admit, so that as many as possible get the on-time share they ask for.

    Use it to see how many subscribers a network can satisfy. A subscriber asks with reliability = 0.9 in the
    file. Subscribers that ask for nothing are always satisfied, but load the network like the others.

    Each refusal states its reason: the predicted share, or the admitted subscriber that would no longer get
    its share.
    """
    from betimes.prediction.admission_policies import Settings

    if not 0.0 <= margin < 1.0:
        raise SettingError("--margin", margin, "must be from 0 to less than 1", "for example 0.02")
    source, statistics = statistics_from(scenario, tables, seed)
    settings = Settings(model=model_named(model), early_drop=not keep_expired, margin=margin)
    facts = admission_facts(statistics, policy, settings)
    if as_json:
        print_json({"file": str(source), **facts})
    else:
        print_admission(f"{source}, policy {policy}", facts)


def admission_facts(statistics: NetworkStatistics, policy: str, settings: Settings) -> dict[str, Any]:
    """Return what --json prints."""
    from betimes.prediction.admission_policies import PolicyNetwork, policy_named

    candidates = statistics.subscriptions
    choose = policy_named(policy)
    if not candidates or not statistics.publishers:
        raise BetimesError("there is no subscriber to admit: the file needs publishers and subscribers")
    if len(candidates) > CANDIDATES_MAX:
        hint = "use fewer subscribers, or those of one region"
        raise SettingError(
            "subscribers", len(candidates), f"at most {CANDIDATES_MAX:,} are weighed at once", hint
        )
    network = PolicyNetwork(statistics, candidates, settings)
    admitted = choose(network)
    inside = network.admission([each for each in candidates if each.id in admitted.shares])
    decisions = []
    for each in candidates:
        if each.id in admitted.shares:
            share, why = admitted.shares[each.id], ""
            if share < network.asked(each):
                why = f"predicted {share:.3f} of the {each.qos.reliability:g} asked for"
        else:
            verdict = inside.consider(each)
            share, why = verdict.predicted_share, verdict.reason
            if verdict.admitted:
                why = f"predicted {share:.3f}: too near to what is asked, or to what was promised others"
        decisions.append(
            {
                "subscriber": each.id,
                "admitted": each.id in admitted.shares,
                "asked": each.qos.reliability,
                "predicted_share": share,
                "why": why,
            }
        )
    return {
        "policy": policy,
        "model": settings.model.value,
        "candidates": len(candidates),
        "admitted": len(admitted.shares),
        "satisfied": admitted.satisfied,
        "subscribers": decisions,
    }


def print_admission(title: str, facts: dict[str, Any]) -> None:
    """Print tables: the admitted and the refused subscribers, with reasons."""
    for admitted, heading in ((True, "admitted"), (False, "refused")):
        rows = [
            (each["subscriber"], each["asked"], f"{each['predicted_share']:.3f}", each["why"] or "-")
            for each in facts["subscribers"]
            if each["admitted"] is admitted
        ]
        if rows:
            predicted = "predicted" if admitted else "predicted, if admitted too"
            print_table(f"{title}: {heading} ({len(rows)})", ["subscriber", "asked", predicted, "why"], rows)
