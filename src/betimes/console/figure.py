"""Does Betimes do what the papers say? `betimes figures` lists the figures, `betimes figure` runs one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from betimes.console.cluster import MasterOption, RemoteOption
from betimes.console.experiment import FigureRun, make_plan, run_figure
from betimes.console.terminal import (
    JsonOption,
    print_facts,
    print_json,
    print_notice,
    print_table,
    spread_text,
)
from betimes.experiments.figures import Point

DEFAULT_OUT = Path("out")
SEEDS, QUICK_SEEDS = 10, 3
FAILED = 1  # the exit code when it ran, and a run failed

LIST_EXAMPLES = """\
[bold]Examples[/bold]

betimes figures

betimes figures --json
"""

EXAMPLES = """\
[bold]Examples[/bold]

betimes figure wang-6 --quick

betimes figure wang-5 --seeds 10 --first-seed 100 --out results

betimes figure wang-6 --master spark://HOST:7077 --json > wang-6.json
"""

OutOption = Annotated[Path, typer.Option("--out", help="Directory for points, claims and pictures.")]


def figures_command(as_json: JsonOption = False) -> None:
    """List the figures of the papers that can be run."""
    from betimes.experiments.catalogue import FIGURES

    if as_json:
        facts = [{"name": each.name, "title": each.title, "about": each.about} for each in FIGURES.values()]
        print_json({"figures": facts})
    else:
        rows = [(each.name, each.about) for each in FIGURES.values()]
        print_table("figures: run one with betimes figure NAME", ["name", "what it asks"], rows)


def figure_command(
    name: Annotated[str, typer.Argument(help="A name from `betimes figures`, such as wang-6.")],
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help=f"How many seeds. Default: {SEEDS}, or {QUICK_SEEDS} if quick."),
    ] = None,
    first_seed: Annotated[int, typer.Option("--first-seed", help="The first of the seeds.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A short look: fewer points, shorter runs.")] = False,
    out: OutOption = DEFAULT_OUT,
    master: MasterOption = None,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a figure of a paper on Spark, draw it, and say which of the paper's claims hold.

    A claim that does not hold is a result, not an error; the command ends with 1 only if a run failed.
    The files are in OUT/NAME.
    """
    from betimes.experiments.catalogue import figure_named

    figure = figure_named(name)
    plan = make_plan(seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS, first_seed, quick=quick)
    run = run_figure(figure, plan, out, master=master, remote=remote)
    if as_json:
        print_json(run.as_json())
    else:
        print_run(run)
    if run.failures:
        raise typer.Exit(FAILED)


def print_run(run: FigureRun) -> None:
    """Print points, claims and files for a person."""
    for panel in run.figure.panels:
        here = [point for point in run.points if point.panel == panel.key]
        if panel.is_scatter:
            continue  # a cloud says nothing as a table; its errors are among the claims
        print_points(f"{panel.title}: {panel.y_label}, by {panel.x_label}", here)
    rows = [
        ("yes" if claim.held else "NO", claim.text, claim.published, claim.measured) for claim in run.claims
    ]
    if rows:
        print_table("what is claimed", ["held", "claim", "published", "measured"], rows)
        print_notice("a published number is held when it lies within two standard deviations between seeds")
    held = sum(claim.held for claim in run.claims)
    facts = {"claims held": f"{held} of {len(run.claims)}", "runs failed": len(run.failures)}
    print_facts("", {**facts, "seconds": round(run.took_s, 1), "picture": run.files["png"]})


def print_points(title: str, points: list[Point]) -> None:
    """Print curves as rows and places as columns: mean ± deviation over seeds."""
    places = sorted({point.x for point in points})
    by_place = {(point.curve, point.x): point for point in points}
    rows = []
    for curve in dict.fromkeys(point.curve for point in points):
        found = [by_place.get((curve, place)) for place in places]
        rows.append([curve, *(spread_text(p.y, p.sd) if p else "" for p in found)])
    columns = [f"{place:g}" for place in places]
    print_table(title, ["curve", *columns], rows, numbers=columns)
