"""What did the paper promise? Its network under FIFO, EB and our best: `betimes demo --simulated`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from betimes.experiments.figure import Row, spread
from betimes.reporting.run_figure import FigureRun, make_plan, run_figure
from betimes.terminal.exit_codes import FAILED
from betimes.terminal.next_steps import print_next
from betimes.terminal.terminal import print_json, print_table, results, spread_text

SEEDS = 4

NEXT = {
    "betimes figure wang-6 --quick": "a figure of the paper",
    "betimes simulate examples/city.toml": "one network, one run",
    'betimes filter "speed > 50" --event speed=61': "what a filter means",
}


def simulated_demo(out: Path, *, master: str | None, remote: str | None, as_json: bool) -> None:
    """Run the network of Wang et al. (2006) under three strategies, and show what that is worth."""
    from betimes.demo.paper_network import DEMO  # numba comes with it

    run = run_figure(DEMO, make_plan(SEEDS, 1, quick=False), out, master=master, remote=remote)
    if as_json:
        print_json(run.as_json())
    else:
        print_demo(run)
    if run.failures:
        raise typer.Exit(FAILED)


def print_demo(run: FigureRun) -> None:
    """Print the congested case as a table, where the picture is, and what to try next."""
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
    """Return a row for each strategy at the congested rate: its name, what it is, and each measure."""
    from betimes.demo.paper_network import MEASURES, RATES, STRATEGIES

    table = []
    for strategy, about in STRATEGIES.items():
        here = [row for row in rows if row["strategy"] == strategy and row["rate"] == RATES[-1]]
        spreads = [spread(row[measure] for row in here) for measure in MEASURES] if here else []
        table.append([strategy, about, *(spread_text(each.mean, each.sd) for each in spreads)])
    return table
