"""A run of a figure: a sweep on Spark, with points, claims and picture in a directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan, Point
from betimes.model.errors import BetimesError, SettingError
from betimes.reporting.figure_plots import draw_figure
from betimes.terminal.progress import progress_bar
from betimes.terminal.spark_options import open_spark
from betimes.terminal.terminal import notices, print_error, pure

FAILURES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRun:
    """The result of a figure; `rows` are the results of the single runs."""

    figure: Figure
    rows: list[dict[str, Any]]
    points: list[Point]
    claims: list[Claim]
    failures: list[dict[str, Any]]
    files: dict[str, str]
    took_s: float

    def as_json(self) -> dict[str, Any]:
        """Return what --json prints."""
        return {
            "figure": self.figure.name,
            "title": self.figure.title,
            "points": [asdict(point) for point in self.points],
            "claims": [asdict(claim) for claim in self.claims],
            "failures": self.failures,
            "files": self.files,
            "took_s": round(self.took_s, 1),
        }


def make_plan(seeds: int, first_seed: int, *, quick: bool) -> FigurePlan:
    """Return a plan with consecutive seeds from the first one on."""
    if seeds < 1:
        raise SettingError("--seeds", seeds, "must be at least 1")
    if first_seed < 0:
        raise SettingError("--first-seed", first_seed, "must not be negative")
    return FigurePlan(seeds=tuple(range(first_seed, first_seed + seeds)), quick=quick)


def run_figure(
    figure: Figure, plan: FigurePlan, out: Path, *, master: str | None = None, remote: str | None = None
) -> FigureRun:
    """Run every row of the figure on Spark; write results, points, claims and picture to OUT/NAME."""
    from betimes.pipeline.sweeps.sweep import run_sweep
    from betimes.pipeline.tables.parquet import ready_to_write

    directory = out / figure.name
    ready_to_write(directory, overwrite=True)  # an error here comes before the start of Spark
    spark = open_spark(f"betimes {figure.name}", master, remote)
    with progress_bar(f"{figure.name}: runs") as advance:
        sweep = run_sweep(
            spark, figure.rows(plan), figure.run, progress=advance, out=directory, overwrite=True
        )
    rows, failures = sweep.results.to_pylist(), sweep.failures.to_pylist()
    report_failures(failures)
    if not rows:
        raise BetimesError(f"{figure.name}: all {len(failures)} runs failed; see {directory}")
    points, claims = _evaluate(figure, rows, failures)
    return FigureRun(
        figure=figure,
        rows=rows,
        points=points,
        claims=claims,
        failures=failures,
        files=_write(figure, points, claims, directory),
        took_s=sweep.took_s,
    )


def report_failures(failures: Sequence[dict[str, Any]]) -> None:
    """Print the first few failures to standard error, with their parameters."""
    for failure in failures[:FAILURES_SHOWN]:
        print_error(f"run {failure['parameters']} failed: {failure['error']}: {failure['message']}")
    if len(failures) > FAILURES_SHOWN:
        notices().print(f"and {len(failures) - FAILURES_SHOWN} more failed")


def _evaluate(
    figure: Figure, rows: list[dict[str, Any]], failures: list[dict[str, Any]]
) -> tuple[list[Point], list[Claim]]:
    try:
        return figure.points(rows), figure.claims(rows)
    except (KeyError, ValueError, ZeroDivisionError, IndexError) as error:
        if not failures:
            raise
        # Without some runs, a claim may have nothing to compare: that is not a bug.
        raise BetimesError(
            f"{figure.name}: {len(failures)} runs failed, and the others are too few for its claims"
        ) from error


def _write(figure: Figure, points: list[Point], claims: list[Claim], directory: Path) -> dict[str, str]:
    from betimes.pipeline.tables.parquet import column_table, write_table

    write_table(column_table([asdict(point) for point in points]), directory / "points.parquet")
    text = json.dumps(pure([asdict(claim) for claim in claims]), indent=2, ensure_ascii=False)
    (directory / "claims.json").write_text(text + "\n", encoding="utf-8")
    png, svg = draw_figure(
        directory / figure.name,
        title=figure.title,
        panels=figure.panels,
        points=points,
        published=figure.published,
        ours=figure.ours,
    )
    return {
        "png": str(png),
        "svg": str(svg),
        "points": str(directory / "points.parquet"),
        "claims": str(directory / "claims.json"),
        "results": str(directory / "results.parquet"),
        "failures": str(directory / "failures.parquet"),
    }
