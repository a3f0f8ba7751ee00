"""A sweep: many runs distributed over Spark, where a failing run does not lose the others.

A DataFrame of parameter rows goes in, a plain function runs once per row inside the tasks, and two tables
come out: the results, and the failures with their parameters. If a run kills its worker process, the sweep is
repeated once with every run in a process of its own, so that even this is a row in the table of failures.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from betimes.model.errors import SettingError
from betimes.pipeline.spark.lazy import DataFrame, SparkSession
from betimes.pipeline.spark.watched_jobs import JobError, Progress, watched
from betimes.pipeline.sweeps.tasks import OUTCOME_SCHEMA, SweepFunction, TaskOutcome, run_alone, run_here
from betimes.pipeline.tables.parquet import FAILURE_COLUMNS, column_table, ready_to_write, write_table

TASKS_MAX = 100  # a Python task costs some 50 ms whatever it does: above this number, rows share a task
WORKER_DIED = "Python worker exited unexpectedly"  # Spark's wording

OUTCOME_COLUMNS = "row long, result string, run_s double, error string, message string, trace string"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """One row per run that returned, one row per run that failed, in the order given."""

    results: pa.Table
    failures: pa.Table
    took_s: float

    def write(self, directory: Path, *, overwrite: bool = False) -> None:
        """Write `results.parquet` and `failures.parquet`, each completely or not at all."""
        ready_to_write(directory, overwrite=overwrite)
        write_table(self.failures, directory / "failures.parquet")
        write_table(self.results, directory / "results.parquet")


def run_sweep(
    spark: SparkSession,
    rows: Sequence[Mapping[str, Any]],
    run: SweepFunction,
    *,
    progress: Progress | None = None,
    rows_per_task: int | None = None,
    out: Path | None = None,
    overwrite: bool = False,
) -> SweepResult:
    """Run `run` once for every row of parameters, as Spark tasks, and return results and failures.

    A row holds scalars (numbers, texts, flags, None) and so does the result of `run`; a list or a mapping in
    it becomes JSON text. `run` must be importable on the workers or be a function that pickles. With `out`,
    both tables are written there as Parquet; existing tables are kept unless `overwrite`.
    """
    if rows_per_task is not None and rows_per_task < 1:
        raise SettingError("rows_per_task", rows_per_task, "must be at least 1")
    if out is not None:
        ready_to_write(out, overwrite=overwrite)  # before the work, not after it
    began_s = time.monotonic()
    texts = [_parameters_text(number, row) for number, row in enumerate(rows)]
    outcomes = _outcomes(spark, texts, run, rows_per_task, progress) if texts else []
    result = _tables([dict(row) for row in rows], outcomes, time.monotonic() - began_s)
    if out is not None:
        result.write(out, overwrite=overwrite)
    return result


def _outcomes(
    spark: SparkSession,
    texts: list[str],
    run: SweepFunction,
    rows_per_task: int | None,
    progress: Progress | None,
) -> list[TaskOutcome]:
    per_task = rows_per_task or math.ceil(len(texts) / TASKS_MAX)
    report = progress or (lambda _done, _total: None)
    try:
        return _collect(spark, texts, _task(run, run_here), per_task, report)
    except JobError as error:
        if WORKER_DIED not in str(error):
            raise
    # A run killed its worker, and Spark lost the rest of the job with it.
    return _collect(spark, texts, _task(run, run_alone), 1, report)


def _task(
    run: SweepFunction, how: Callable[[SweepFunction, int, str], TaskOutcome]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that Spark calls with the batches of one task."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for given in batch.to_pylist():
                outcome = how(run, given["row"], given["parameters"])
                yield pa.RecordBatch.from_pylist([outcome.as_row()], schema=OUTCOME_SCHEMA)

    return task


def _collect(
    spark: SparkSession, texts: list[str], task: Callable[..., Any], per_task: int, report: Progress
) -> list[TaskOutcome]:
    tasks = math.ceil(len(texts) / per_task)
    outcomes = _parameter_frame(spark, texts, per_task, tasks).mapInArrow(task, OUTCOME_COLUMNS)
    table = watched(
        spark,
        outcomes.toArrow,
        tasks,
        lambda done: report(min(done * per_task, len(texts)), len(texts)),
        "the sweep",
    )
    report(len(texts), len(texts))
    return sorted((TaskOutcome.from_row(row) for row in table.to_pylist()), key=lambda outcome: outcome.row)


def _parameter_frame(spark: SparkSession, texts: list[str], per_task: int, tasks: int) -> DataFrame:
    numbers = range(len(texts))
    table = pa.table(
        {
            "row": pa.array(numbers, pa.int64()),
            "task": pa.array([number // per_task for number in numbers], pa.int32()),
            "parameters": pa.array(texts, pa.string()),
        }
    )
    # One partition first, so that the stage with `tasks` tasks is the one that runs, for the progress.
    frame = spark.createDataFrame(table).coalesce(1)
    return frame.repartitionById(tasks, "task") if tasks > 1 else frame


def _parameters_text(number: int, row: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(row))
    except (TypeError, ValueError) as error:
        problem = f"holds something that is not a number, text, flag or None ({error})"
        raise SettingError(f"row {number} of the sweep", dict(row), problem) from error


def _tables(rows: list[dict[str, Any]], outcomes: list[TaskOutcome], took_s: float) -> SweepResult:
    results: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    for outcome in outcomes:
        parameters = rows[outcome.row]
        if outcome.result is None:
            facts = {"error": outcome.error, "message": outcome.message, "trace": outcome.trace}
            failures.append({"parameters": json.dumps(parameters), **facts})
        else:
            results.append({**parameters, **json.loads(outcome.result), "run_s": outcome.run_s})
    return SweepResult(
        results=column_table(results, first=tuple(rows[0]) if rows else ()),
        failures=column_table(failures, first=FAILURE_COLUMNS),
        took_s=took_s,
    )
