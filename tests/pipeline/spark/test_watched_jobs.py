"""Is a job of Spark followed while it runs, and stopped when nobody waits for it any more?"""

from __future__ import annotations

import time

import pytest

from betimes.model.errors import BetimesError
from betimes.pipeline.spark.session import in_background
from betimes.pipeline.spark.watched_jobs import JobError, TaskCount, job_value, watched, what_spark_said


def slow(batches):
    time.sleep(0.5)
    yield from batches


@pytest.mark.spark
def test_tasks_are_told_while_they_are_done(spark):
    frame = spark.range(0, 30, 1, 6).mapInArrow(slow, "id bigint")
    told: list[int] = []
    assert watched(spark, frame.count, 6, lambda done, _: told.append(done), "a count") == 30
    assert told[0] == 0
    assert max(told[:-1]) >= 1
    assert told[-1] == 6


@pytest.mark.spark
def test_an_interrupt_stops_the_job(spark):
    def interrupt(done, tasks):
        if done >= 1:
            raise KeyboardInterrupt

    frame = spark.range(0, 400, 1, 40).mapInArrow(slow, "id bigint")
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        watched(spark, frame.count, 40, interrupt, "a count")
    assert time.monotonic() - began_s < 8.0
    assert TaskCount(spark, 40, "nothing").done() == 0


def test_errors_of_ours_stay_what_they_are_and_others_are_told():
    def ours():
        raise BetimesError("a mistake")

    def theirs():
        raise RuntimeError("it broke\n  at somewhere.java\nit broke")

    for action, expected in ((ours, "a mistake"), (theirs, "the job failed in Spark: it broke")):
        under_way = in_background(action)
        with pytest.raises(BetimesError, match=expected) as raised:
            job_value(under_way, "the job")
        assert isinstance(raised.value, JobError) == (action is theirs)
    assert what_spark_said(RuntimeError("")) == "RuntimeError"
