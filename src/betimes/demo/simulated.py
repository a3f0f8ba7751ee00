"""`betimes demo --simulated`: the paper's network under FIFO, EB and late binding, on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from betimes.experiments.figure import Figure, FigurePlan, Panel, Point, Row, curve_points, spread
from betimes.experiments.wang.network import CONGESTED, SSD, run_row
from betimes.reporting.run_figure import FigureRun, make_plan, run_figure
from betimes.terminal.exit_codes import FAILED
from betimes.terminal.terminal import print_json, print_next, print_table, results, spread_text

STRATEGIES = {
    "fifo": "first come, first served",
    "eb": "the paper's",
    "late-binding": "ours",
}
OURS = "late-binding"
RATES = (5.0, 10.0, CONGESTED)
DURATION_S = 3600.0  # half of the paper's: the demo takes two minutes
MEASURES = {"delivery_rate": "on-time share", "earning": "earning", "messages": "messages"}
X_LABEL = "messages per minute and publisher"
SEEDS = 4

NEXT = {
    "betimes figure wang-6 --quick": "a figure of the paper",
    "betimes simulate examples/city.toml": "one network, one run",
    'betimes filter "speed > 50" --event speed=61': "what a filter means",
}


def demo_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return three strategies at three rates; the same seed gives the same network and random numbers."""
    return [
        {"scenario": SSD, "strategy": strategy, "rate": rate, "seed": seed, "duration_s": DURATION_S}
        for seed in plan.seeds
        for rate in RATES
        for strategy in STRATEGIES
    ]


def demo_points(rows: Sequence[Row]) -> list[Point]:
    """Return each measure over the rate."""
    return [
        point
        for measure in MEASURES
        for strategy in STRATEGIES
        for point in curve_points(
            rows, panel=measure, curve=strategy, x="rate", y=measure, where={"strategy": strategy}
        )
    ]


DEMO = Figure(
    name="demo",
    title="160 subscribers, 32 brokers, overloaded links",
    about="the value of a good scheduling strategy",
    panels=tuple(
        Panel(key=key, title=label, x_label=X_LABEL, y_label=label) for key, label in MEASURES.items()
    ),
    published=(),
    ours=(OURS,),
    rows=demo_rows,
    run=run_row,
    points=demo_points,
    claims=lambda _rows: [],
)


def simulated_demo(out: Path, *, master: str | None, remote: str | None, as_json: bool) -> None:
    """Run the network of Wang et al. (2006) under three strategies, and print the result."""
    run = run_figure(DEMO, make_plan(SEEDS, 1, quick=False), out, master=master, remote=remote)
    if as_json:
        print_json(run.as_json())
    else:
        print_demo(run)
    if run.failures:
        raise typer.Exit(FAILED)


def print_demo(run: FigureRun) -> None:
    """Print the congested case as a table, the path of the picture, and commands to try next."""
    measures = list(MEASURES.values())
    print_table(
        f"{run.figure.title}: at {RATES[-1]:g} {X_LABEL}",
        ["strategy", "", *measures],
        demo_table(run.rows),
        numbers=measures,
    )
    console = results()
    console.print(
        f"mean ± deviation over {SEEDS} seeds; {len(run.rows)} simulated hours in {run.took_s:.0f} s"
    )
    console.print(f"\npicture: {run.files['png']}")
    print_next(NEXT)


def demo_table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a row for each strategy at the congested rate: name, description, and each measure."""
    table = []
    for strategy, about in STRATEGIES.items():
        here = [row for row in rows if row["strategy"] == strategy and row["rate"] == RATES[-1]]
        spreads = [spread(row[measure] for row in here) for measure in MEASURES] if here else []
        table.append([strategy, about, *(spread_text(each.mean, each.sd) for each in spreads)])
    return table
