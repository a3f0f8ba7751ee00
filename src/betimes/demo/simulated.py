"""`betimes demo --simulated`: the paper's network under FIFO, EB and late binding, on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from betimes.experiments.figure import Row, spread
from betimes.reporting.run_figure import FigureRun, make_plan, run_figure
from betimes.terminal.exit_codes import FAILED
from betimes.terminal.terminal import print_json, print_next, print_table, results, spread_text

SEEDS = 4

NEXT = {
    "betimes figure wang-6 --quick": "a figure of the paper",
    "betimes simulate examples/city.toml": "one network, one run",
    'betimes filter "speed > 50" --event speed=61': "what a filter means",
}


def simulated_demo(out: Path, *, master: str | None, remote: str | None, as_json: bool) -> None:
    """Run the network of Wang et al. (2006) under three strategies, and print the result."""
    from betimes.demo.paper_network import DEMO  # late, because it imports numba

    run = run_figure(DEMO, make_plan(SEEDS, 1, quick=False), out, master=master, remote=remote)
    if as_json:
        print_json(run.as_json())
    else:
        print_demo(run)
    if run.failures:
        raise typer.Exit(FAILED)


def print_demo(run: FigureRun) -> None:
    """Print the congested case as a table, the path of the picture, and commands to try next."""
    from betimes.demo.paper_network import MEASURES, RATES, X_LABEL

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
    from betimes.demo.paper_network import MEASURES, RATES, STRATEGIES

    table = []
    for strategy, about in STRATEGIES.items():
        here = [row for row in rows if row["strategy"] == strategy and row["rate"] == RATES[-1]]
        spreads = [spread(row[measure] for row in here) for measure in MEASURES] if here else []
        table.append([strategy, about, *(spread_text(each.mean, each.sd) for each in spreads)])
    return table
