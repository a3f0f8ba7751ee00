"""Spark jobs that report progress while they run, and that Ctrl-C stops."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from betimes.model.errors import BetimesError
from betimes.pipeline.spark.lazy import SparkSession
from betimes.pipeline.spark.session import in_background, is_remote

Progress = Callable[[int, int], None]  # done, in all
POLL_S = 0.2
CANCEL_S_MAX = 10.0


class JobError(BetimesError):
    """Spark itself failed: its message, without the stack traces."""


def watched(
    spark: SparkSession, action: Callable[[], Any], tasks: int, progress: Progress | None, what: str
) -> Any:
    """Run an action that starts jobs; report now and then how many of its tasks are done; return its result.

    When the wait is interrupted, the jobs are cancelled.
    """
    report = progress or (lambda _done, _tasks: None)
    count = TaskCount(spark, tasks, what)
    under_way = in_background(lambda: count.run(action))
    try:
        report(0, tasks)
        while not wait([under_way], POLL_S).done:
            report(count.done(), tasks)
    except BaseException:
        _stop(count, under_way)
        raise
    value = job_value(under_way, what)
    report(tasks, tasks)
    return value


def _stop(count: TaskCount, under_way: Future[Any]) -> None:
    """Stop the job, not only the wait for it: a thread that still reads from Spark crashes Python at exit."""

    def cancel() -> None:
        # Repeatedly, because a job that is not submitted yet cannot be cancelled yet.
        while not wait([under_way], POLL_S).done and time.monotonic() < deadline_s:
            count.cancel()

    deadline_s = time.monotonic() + CANCEL_S_MAX
    # In another thread: this one may have been interrupted before it read an answer of Java's.
    wait([in_background(cancel)], CANCEL_S_MAX)


class TaskCount:
    """How many tasks of an action are done, by Spark's status tracker; unknown over Spark Connect."""

    def __init__(self, spark: SparkSession, tasks: int, what: str) -> None:
        self._spark = spark
        self._context = None if is_remote(spark) else spark.sparkContext
        self._tasks = tasks
        self._what = what
        self._group = f"betimes-{uuid.uuid4().hex}"

    def run(self, action: Callable[[], Any]) -> Any:
        """Run the action in the calling thread, its jobs marked as ours."""
        if self._context is not None:
            self._context.setJobGroup(self._group, f"Betimes: {self._what}", interruptOnCancel=True)
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


def job_value(under_way: Future[Any], what: str) -> Any:
    """Return what an action returned, or raise a JobError with Spark's message; ours pass unchanged."""
    error = under_way.exception()
    if error is None or isinstance(error, BetimesError):
        return under_way.result()
    raise JobError(f"{what} failed in Spark: {what_spark_said(error)}") from error


def what_spark_said(error: BaseException) -> str:
    """Return the lines of a Spark error that carry information: no stack traces, no line twice."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [
        line for line in lines if line and not line.startswith(("at ", "...", "Driver stacktrace", "File "))
    ]
    return "\n  ".join(dict.fromkeys(telling[:6])) or type(error).__name__
