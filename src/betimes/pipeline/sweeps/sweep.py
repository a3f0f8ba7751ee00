"""A sweep: many runs distributed over Spark, where a failing run does not lose the others.

A DataFrame of parameter rows goes in, a plain function runs once per row inside the tasks, and two tables
come out: the results, and the failures with their parameters. If a run kills its worker process, the sweep is
repeated once with every run in a process of its own, so that even this is a row in the table of failures.
Whatever a run raises, unusual exceptions included, is one too.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from betimes.model.errors import SettingError
from betimes.pipeline.spark.lazy import SparkSession
from betimes.pipeline.spark.session import dealt_out
from betimes.pipeline.spark.watched_jobs import JobError, Progress, watched
from betimes.pipeline.tables.files import arrow_schema
from betimes.pipeline.tables.parquet import FAILURE_COLUMNS, column_table, ready_to_write, write_table

SweepFunction = Callable[[Mapping[str, Any]], Mapping[str, Any]]

TRACE_LINES_MAX = 12
MESSAGE_CHARACTERS_MAX = 2000
MEASURED = "run_s"  # a column that the sweep adds to the results
TASKS_MAX = 100  # a Python task costs some 50 ms whatever it does: above this number, rows share a task
WORKER_DIED = "Python worker exited unexpectedly"  # Spark's wording
OUTCOME_COLUMNS = "row bigint, result string, run_s double, error string, message string, trace string"
OUTCOME_SCHEMA = arrow_schema(OUTCOME_COLUMNS)


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
    per_task = rows_per_task or math.ceil(len(texts) / TASKS_MAX)
    try:
        outcomes = _collect(spark, texts, partial(run_rows, run, run_here), per_task, progress)
    except JobError as error:
        if WORKER_DIED not in str(error):
            raise
        # A run killed its worker, and Spark lost the rest of the job with it.
        outcomes = _collect(spark, texts, partial(run_rows, run, run_alone), 1, progress)
    result = _tables([dict(row) for row in rows], outcomes, time.monotonic() - began_s)
    if out is not None:
        result.write(out, overwrite=overwrite)
    return result


def run_rows(
    run: SweepFunction,
    how: Callable[[SweepFunction, int, str], TaskOutcome],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Run the rows of one task."""
    for batch in batches:
        for given in batch.to_pylist():
            outcome = how(run, given["row"], given["parameters"])
            yield pa.RecordBatch.from_pylist([asdict(outcome)], schema=OUTCOME_SCHEMA)


def _collect(
    spark: SparkSession, texts: list[str], task: Callable[..., Any], per_task: int, progress: Progress | None
) -> list[TaskOutcome]:
    if not texts:
        return []
    tasks, numbers = math.ceil(len(texts) / per_task), np.arange(len(texts))
    parameters = pa.table({"row": numbers, "task": numbers // per_task, "parameters": texts})
    outcomes = dealt_out(spark, parameters, tasks).mapInArrow(task, OUTCOME_COLUMNS)

    def report(done: int, _tasks: int) -> None:
        if progress is not None:
            progress(min(done * per_task, len(texts)), len(texts))

    table = watched(spark, outcomes.toArrow, tasks, report, "the sweep")
    return sorted((TaskOutcome(**row) for row in table.to_pylist()), key=lambda outcome: outcome.row)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """One run: its result as JSON, or the error's type, message and last lines of its traceback."""

    row: int
    result: str | None = None
    run_s: float = 0.0
    error: str | None = None
    message: str | None = None
    trace: str | None = None


def run_here(run: SweepFunction, row: int, parameters_text: str) -> TaskOutcome:
    """Run one row in this process."""
    began_s = time.perf_counter()
    try:
        parameters = json.loads(parameters_text)
        result = _result_text(run(parameters), parameters)
    except BaseException as error:  # noqa: BLE001 -- SystemExit and the like must not lose the other rows
        return _failed(row, error, time.perf_counter() - began_s)
    return TaskOutcome(row=row, result=result, run_s=time.perf_counter() - began_s)


def run_alone(run: SweepFunction, row: int, parameters_text: str) -> TaskOutcome:
    """Run one row in a forked process; a process that dies becomes a failure."""
    began_s = time.perf_counter()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _work_and_leave(run, row, parameters_text, reading, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    took_s = time.perf_counter() - began_s
    if not answer:
        return TaskOutcome(row=row, error="ProcessDied", message=_how_it_died(status), run_s=took_s)
    return TaskOutcome(**json.loads(answer))


def _work_and_leave(run: SweepFunction, row: int, parameters_text: str, reading: int, writing: int) -> None:
    code = 1
    try:
        os.close(reading)
        outcome = run_here(run, row, parameters_text)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(asdict(outcome)).encode())
        code = 0
    finally:
        # Not sys.exit: the worker's sockets and exit handlers belong to the parent.
        os._exit(code)


def _how_it_died(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"the process running it was killed by {signal.Signals(-code).name}"
    return f"the process running it ended with code {code} and without a result"


def _result_text(result: object, parameters: Mapping[str, Any]) -> str:
    if not isinstance(result, Mapping):
        raise TypeError(f"a run returns a mapping of names to values, not {type(result).__name__}")
    names = [name for name in result if name in parameters and result[name] != parameters[name]]
    names += [MEASURED] if MEASURED in result else []
    if names:
        raise ValueError(
            f"the run's result would hide a parameter or column of the sweep: {', '.join(names)}"
        )
    return json.dumps(dict(result), default=_plain)


def _plain(value: object) -> Any:
    """Return numpy's scalars and arrays as Python's; json calls this only for types that it does not know."""
    for convert in ("item", "tolist"):
        method = getattr(value, convert, None)
        if method is not None and (convert == "tolist" or getattr(value, "ndim", 1) == 0):
            return method()
    raise TypeError(
        f"a run's result may hold numbers, texts, flags, lists and mappings, not {type(value).__name__}"
    )


def _failed(row: int, error: BaseException, run_s: float) -> TaskOutcome:
    try:
        message = str(error)
    except Exception as second:  # noqa: BLE001 -- an error that cannot even say what it is
        message = f"(its message cannot be had: {type(second).__name__})"
    own_frame = error.__traceback__
    lines = "".join(traceback.format_tb(own_frame.tb_next if own_frame else None)).splitlines()
    return TaskOutcome(
        row=row,
        run_s=run_s,
        error=type(error).__name__,
        message=message[:MESSAGE_CHARACTERS_MAX],
        trace="\n".join(lines[-TRACE_LINES_MAX:]),
    )
