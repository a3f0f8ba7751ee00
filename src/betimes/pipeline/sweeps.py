"""How are many runs spread over Spark, so that one that fails does not lose the others?

A DataFrame of parameter rows goes in, a plain function runs once per row inside the tasks, and two
tables come out: the results, and the failures with their parameters. If a run takes its worker process
down with it, the sweep is run once more with every run in a process of its own, so that even this is a
row in the table of failures.
"""

from __future__ import annotations

import json
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from betimes.model.errors import BetimesError, SettingError
from betimes.pipeline.session import is_remote
from betimes.pipeline.sweep_tables import FAILURE_COLUMNS, column_table, ready_to_write, write_table
from betimes.pipeline.sweep_tasks import OUTCOME_SCHEMA, Outcome, Run, run_alone, run_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_MAX = 100  # a Python task costs some 50 ms whatever it does: past this many, rows share one
POLL_S = 0.2
CANCEL_S_MAX = 10.0
WORKER_DIED = "Python worker exited unexpectedly"  # how Spark puts it
Progress = Callable[[int, int], None]  # rows done, rows in all

OUTCOME_COLUMNS = "row long, result string, run_s double, error string, message string, trace string"


class SweepError(BetimesError):
    """Spark itself failed, not one of the runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What came out: one row per run that returned, one row per run that failed, in the order given."""

    results: pa.Table
    failures: pa.Table
    took_s: float

    def write(self, directory: Path, *, overwrite: bool = False) -> None:
        """Write `results.parquet` and `failures.parquet`, each whole or not at all."""
        ready_to_write(directory, overwrite=overwrite)
        write_table(self.failures, directory / "failures.parquet")
        write_table(self.results, directory / "results.parquet")


def run_sweep(
    spark: SparkSession,
    rows: Sequence[Mapping[str, Any]],
    run: Run,
    *,
    progress: Progress | None = None,
    rows_per_task: int | None = None,
    out: Path | None = None,
    overwrite: bool = False,
) -> SweepResult:
    """Run `run` once for every row of parameters, as Spark tasks, and return results and failures.

    A row holds scalars (numbers, texts, flags, None) and so does what `run` returns; a list or a mapping
    in it becomes JSON text. `run` must be importable on the workers or be a function that pickles.
    With `out`, both tables are written there as Parquet; what is there already is kept unless `overwrite`.
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
    spark: SparkSession, texts: list[str], run: Run, rows_per_task: int | None, progress: Progress | None
) -> list[Outcome]:
    per_task = rows_per_task or math.ceil(len(texts) / TASKS_MAX)
    tell = progress or (lambda _done, _total: None)
    try:
        return _collect(spark, texts, _task(run, run_here), per_task, tell)
    except SweepError as error:
        if WORKER_DIED not in str(error):
            raise
    # A run took its worker down and Spark lost the rest of the job with it.
    return _collect(spark, texts, _task(run, run_alone), 1, tell)


def _task(run: Run, how: Callable[[Run, int, str], Outcome]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that Spark calls with the batches of one task."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for given in batch.to_pylist():
                outcome = how(run, given["row"], given["parameters"])
                yield pa.RecordBatch.from_pylist([outcome.as_row()], schema=OUTCOME_SCHEMA)

    return task


def _collect(
    spark: SparkSession, texts: list[str], task: Callable[..., Any], per_task: int, tell: Progress
) -> list[Outcome]:
    tasks = math.ceil(len(texts) / per_task)
    outcomes = _parameter_frame(spark, texts, per_task, tasks).mapInArrow(task, OUTCOME_COLUMNS)
    watch = _TaskCount(spark, tasks)
    collected = _Background(lambda: watch.run(outcomes.toArrow))
    try:
        tell(0, len(texts))
        while not collected.wait(POLL_S):
            tell(min(watch.done() * per_task, len(texts)), len(texts))
    except BaseException:
        _stop(watch, collected)
        raise
    table = collected.value()
    tell(len(texts), len(texts))
    return sorted((Outcome.from_row(row) for row in table.to_pylist()), key=lambda outcome: outcome.row)


def _stop(watch: _TaskCount, collected: _Background) -> None:
    """Stop the job, not only the waiting for it: a thread still reading from Spark crashes Python's exit."""
    deadline_s = time.monotonic() + CANCEL_S_MAX
    # Again and again, because a job that is not submitted yet cannot be cancelled yet.
    while time.monotonic() < deadline_s:
        watch.cancel()
        if collected.wait(POLL_S):
            return


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


def _tables(rows: list[dict[str, Any]], outcomes: list[Outcome], took_s: float) -> SweepResult:
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


class _TaskCount:
    """How many tasks of a sweep are done, as Spark's status tracker tells; unknown over Spark Connect."""

    def __init__(self, spark: SparkSession, tasks: int) -> None:
        self._spark = spark
        self._context = None if is_remote(spark) else spark.sparkContext
        self._tasks = tasks
        self._group = f"betimes-sweep-{uuid.uuid4().hex}"

    def run(self, action: Callable[[], Any]) -> Any:
        """Run the action in the calling thread, its jobs marked as ours."""
        if self._context is not None:
            self._context.setJobGroup(self._group, "a sweep of Betimes", interruptOnCancel=True)
        return action()

    def done(self) -> int:
        """Return how many tasks are done."""
        if self._context is None:
            return 0
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return max((s.numCompletedTasks for s in stages if s and s.numTasks == self._tasks), default=0)

    def cancel(self) -> None:
        """Stop the jobs."""
        if self._context is not None:
            self._context.cancelJobGroup(self._group)
        else:
            self._spark.interruptAll()


class _Background:
    """A value that a thread is working out."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self._action = action
        self._value: Any = None
        self._error: BaseException | None = None
        # Not Thread.join: when Ctrl-C interrupts that, Python takes the thread for ended.
        self._ended = threading.Event()
        threading.Thread(target=self._work, daemon=True, name="betimes-sweep").start()

    def _work(self) -> None:
        try:
            self._value = self._action()
        except BaseException as error:  # noqa: BLE001 -- raised again by value()
            self._error = error
        finally:
            self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; tell whether it is ready."""
        return self._ended.wait(seconds)

    def value(self) -> Any:
        """Return the value, or raise a SweepError with what Spark said."""
        if self._error is not None:
            raise SweepError(f"the sweep failed in Spark: {_what_spark_said(self._error)}") from self._error
        return self._value


def _what_spark_said(error: BaseException) -> str:
    """Return the few lines of a Spark error that say something: no stacks, not the same twice."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [
        line for line in lines if line and not line.startswith(("at ", "...", "Driver stacktrace", "File "))
    ]
    return "\n  ".join(dict.fromkeys(telling[:6])) or type(error).__name__
