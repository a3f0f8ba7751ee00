"""`betimes figures` lists the figures of the papers or runs them all; `betimes figure` runs one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from betimes.experiments.figure import Figure, FigurePlan, Point
from betimes.model.errors import BetimesError, SettingError
from betimes.reporting.run_figure import FigureRun, make_plan, run_figure
from betimes.terminal.exit_codes import FAILED
from betimes.terminal.spark_options import MasterOption, RemoteOption
from betimes.terminal.terminal import (
    JsonOption,
    examples,
    print_error,
    print_facts,
    print_json,
    print_notice,
    print_table,
    spread_text,
)

DEFAULT_OUT = Path("out")
PAGE = "figures.html"
SEEDS, QUICK_SEEDS = 10, 3
BRIEF = ("figure", "title", "claims", "failures", "files", "took_s")  # what --all --json prints of each

LIST_EXAMPLES = examples(
    "betimes figures",
    "betimes figures --json",
    "betimes figures --all --quick --out out",
)

EXAMPLES = examples(
    "betimes figure wang-6 --quick",
    "betimes figure wang-5 --seeds 10 --first-seed 100 --out results",
    "betimes figure wang-6 --master spark://HOST:7077 --json > wang-6.json",
)

OutOption = Annotated[Path, typer.Option("--out", help="The directory for points, claims and pictures.")]


SeedsOption = Annotated[
    int | None,
    typer.Option("--seeds", help=f"The number of seeds. Default: {SEEDS}, or {QUICK_SEEDS} with --quick."),
]
QuickOption = Annotated[bool, typer.Option("--quick", help="Fewer points, shorter runs.")]


def figures_command(
    run_all: Annotated[
        bool, typer.Option("--all", help="Run all figures, and write them to one page: OUT/figures.html.")
    ] = False,
    seeds: SeedsOption = None,
    quick: QuickOption = False,
    out: OutOption = DEFAULT_OUT,
    master: MasterOption = None,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the figures of the papers, or run them all and write one page.

    All figures take hours; with --quick, about a quarter of an hour. The page names each figure that failed,
    and the others still run; the exit code is then 1.
    """
    from betimes.experiments.catalogue import FIGURES

    if run_all:
        plan = _plan(seeds, 1, quick=quick)
        if not run_all_figures(list(FIGURES.values()), plan, out, master, remote, as_json=as_json):
            raise typer.Exit(FAILED)
        return
    _check_list_only({"--seeds": seeds, "--quick": quick or None, "--master": master, "--remote": remote})
    if as_json:
        facts = [{"name": each.name, "title": each.title, "about": each.about} for each in FIGURES.values()]
        print_json({"figures": facts})
    else:
        rows = [(each.name, each.about) for each in FIGURES.values()]
        print_table("figures: run one with betimes figure NAME", ["name", "what it asks"], rows)


def _check_list_only(options: Mapping[str, object]) -> None:
    """Raise an error for an option of a run where the command only lists."""
    for option, value in options.items():
        if value is not None:
            hint = f"betimes figures --all {option} runs all of them, betimes figure NAME {option} one"
            raise SettingError(option, value, "needs --all: the list of figures runs nothing", hint)


def run_all_figures(
    figures: Sequence[Figure],
    plan: FigurePlan,
    out: Path,
    master: str | None,
    remote: str | None,
    *,
    as_json: bool,
) -> bool:
    """Run figures one after the other, and write a page; return whether every run succeeded."""
    from betimes.pipeline.spark.session import SessionError
    from betimes.reporting.figures_page import figures_page
    from betimes.reporting.page import check_page_place, write_page

    runs: list[FigureRun] = []
    unfinished: list[tuple[str, str]] = []
    page = out / PAGE
    check_page_place(page)
    about = f"{len(plan.seeds)} seeds{', with --quick: fewer points, shorter runs' if plan.quick else ''}."
    for number, figure in enumerate(figures, start=1):
        print_notice(f"{figure.name}, {number} of {len(figures)}: {figure.about}")
        try:
            runs.append(run_figure(figure, plan, out, master=master, remote=remote))
        except (SessionError, SettingError):
            raise  # every other figure would fail too
        except BetimesError as error:
            print_error(str(error))
            unfinished.append((figure.name, str(error)))
        write_page(page, figures_page(runs, unfinished, about))  # after an interrupt the first ones are there
    if as_json:
        brief = [{name: run.as_json()[name] for name in BRIEF} for run in runs]
        print_json({"page": str(page), "figures": brief, "unfinished": unfinished})
    else:
        rows = [
            (run.figure.name, f"{sum(claim.held for claim in run.claims)} of {len(run.claims)}", run.took_s)
            for run in runs
        ]
        print_table("figures", ["name", "claims held", "seconds"], rows, numbers=["seconds"])
        print_facts("", {"page": page})
    return not unfinished and not any(run.failures for run in runs)


def _plan(seeds: int | None, first_seed: int, *, quick: bool) -> FigurePlan:
    return make_plan(seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS, first_seed, quick=quick)


def figure_command(
    name: Annotated[str, typer.Argument(help="A name from `betimes figures`, such as wang-6.")],
    seeds: SeedsOption = None,
    first_seed: Annotated[int, typer.Option("--first-seed", help="The first of the seeds.")] = 1,
    quick: QuickOption = False,
    out: OutOption = DEFAULT_OUT,
    master: MasterOption = None,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a figure of a paper on Spark, draw it, and check the paper's claims.

    A claim that does not hold is a result, not an error; the exit code is 1 only if a run failed.
    The files are in OUT/NAME.
    """
    from betimes.experiments.catalogue import figure_named

    figure = figure_named(name)
    plan = _plan(seeds, first_seed, quick=quick)
    run = run_figure(figure, plan, out, master=master, remote=remote)
    if as_json:
        print_json(run.as_json())
    else:
        print_run(run)
    if run.failures:
        raise typer.Exit(FAILED)


def print_run(run: FigureRun) -> None:
    """Print points, claims and files as tables."""
    for panel in run.figure.panels:
        here = [point for point in run.points if point.panel == panel.key]
        if panel.is_scatter:
            continue  # a scatter plot is no use as a table; its errors are among the claims
        print_points(f"{panel.title}: {panel.y_label}, by {panel.x_label}", here)
    rows = [
        ("yes" if claim.held else "NO", claim.text, claim.published, claim.measured) for claim in run.claims
    ]
    if rows:
        print_table("claims", ["held", "claim", "published", "measured"], rows)
        print_notice("a published number holds if it lies within two standard deviations between seeds")
    held = sum(claim.held for claim in run.claims)
    facts = {"claims held": f"{held} of {len(run.claims)}", "runs failed": len(run.failures)}
    print_facts("", {**facts, "seconds": round(run.took_s, 1), "picture": run.files["png"]})


def print_points(title: str, points: list[Point]) -> None:
    """Print curves as rows and x values as columns: mean ± deviation over seeds."""
    places = sorted({point.x for point in points})
    by_place = {(point.curve, point.x): point for point in points}
    rows = []
    for curve in dict.fromkeys(point.curve for point in points):
        found = [by_place.get((curve, place)) for place in places]
        rows.append([curve, *(spread_text(p.y, p.sd if p.seeds > 1 else None) if p else "" for p in found)])
    columns = [f"{place:g}" for place in places]
    print_table(title, ["curve", *columns], rows, numbers=columns)
