"""What does a program do on a cluster whose workers die? All kinds of work; and then, some of it here.

`python -m tests.pipeline.cluster_driver MASTER FOLDER`: results go to FOLDER/cluster, and those of one
process to FOLDER/local. On the cluster, in the midst of each kind of work FOLDER/NAME.now appears, and
whoever watches takes a worker away and answers with FOLDER/NAME.gone.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from betimes.experiments.catalogue import FIGURES
from betimes.pipeline.match.files import MatchRequest, match_files
from betimes.pipeline.match.plan import MatchSettings
from betimes.pipeline.spark import session, worker_daemon
from betimes.pipeline.spark.java import find_java
from betimes.pipeline.sweeps.sweep import run_sweep
from betimes.pipeline.telemetry.job import run_pipeline
from betimes.reporting.run_figure import make_plan, run_figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("sweep", "pipeline", "match", "figure")
HERE_TOO = ("pipeline", "figure")  # what the others come to is known without Spark
FIGURE = "farooq-10-11"
LOOK_EVERY_S = 0.1
JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
SETTINGS = {
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    # What a dead worker held is asked for once: the others are on this machine, and answer or are gone.
    "spark.shuffle.io.maxRetries": "0",
    "spark.locality.wait": "0",
    # Workers here have Betimes before it is sent to them.
    "spark.python.daemon.module": worker_daemon.MODULE,
}
IsTime = Callable[[], bool]


def slow_square(row: Mapping[str, Any]) -> dict[str, Any]:
    time.sleep(0.3)
    return {"square": row["x"] ** 2}


class Works:
    """The kinds of work, each by its name; they take from a folder, and write to a place in it."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.place = place
        self._spark = spark
        self._folder = place.parent
        self._took_s: dict[str, float] = {}

    def do(self, name: str) -> None:
        """Do one kind of work, and write down how long it and those before took."""
        began_s = time.monotonic()
        work: Callable[[], None] = getattr(self, name)
        work()
        self._took_s[name] = round(time.monotonic() - began_s, 1)
        (self.place / "took_s.json").write_text(json.dumps(self._took_s, indent=2))

    def is_under_way(self) -> bool:
        """Tell whether a job is running of which a task is done: a dead worker then holds some of it."""
        tracker = self._spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return any(each.numCompletedTasks for each in stages if each)

    def sweep(self) -> None:
        """Run a plain function for many rows."""
        rows = [{"x": x} for x in range(12)]
        run_sweep(self._spark, rows, slow_square, rows_per_task=2, out=self.place / "sweep")

    def pipeline(self) -> None:
        """Turn telemetry into tables."""
        run_pipeline(self._spark, self._folder / "telemetry", self.place / "pipeline")

    def match(self) -> None:
        """Match with one index for all subscriptions, and with cells."""
        for name, index_mb in (("whole", 512.0), ("divided", 0.02)):
            request = MatchRequest(
                events=str(self._folder / "events.parquet"),
                subscriptions=str(self._folder / "wishes.parquet"),
                out=self.place / name,
                settings=MatchSettings(index_mb_max=index_mb, tasks=4),
            )
            match_files(self._spark, request)

    def figure(self) -> None:
        """Run a figure of a paper, as `betimes figure` does."""
        run_figure(FIGURES[FIGURE], make_plan(1, 1, quick=True), self.place / "figure")


@contextmanager
def opened(place: Path, master: str, settings: Mapping[str, str]) -> Iterator[Works]:
    """Open Spark for a while."""
    spark = session.open_session("test", master=master, settings=settings)
    yield Works(spark, place)
    spark.stop()


@contextmanager
def losing_a_worker(folder: Path, name: str, is_time: IsTime) -> Iterator[None]:
    """Have a worker taken away when it is time, and see to it that this was before the work was done."""
    ended = threading.Event()

    def wait() -> None:
        while not ended.wait(LOOK_EVERY_S):
            if is_time():
                (folder / f"{name}.now").touch()
                return

    threading.Thread(target=wait, daemon=True).start()
    yield
    ended.set()
    assert (folder / f"{name}.gone").exists(), f"{name} was done before a worker could be taken away"


def main(master: str, folder: Path) -> None:
    """Do everything at the master, and then some of it here, in the same Java, which knows it by then."""
    # Workers here have Betimes already, with its kernels compiled.
    session.ship_package = lambda spark: None
    fast = dict.fromkeys(JAVA_OPTIONS, session.local_java_options(find_java()))
    with opened(folder / "cluster", master, SETTINGS | fast) as works:
        half_tables = works.place / "pipeline" / "runs" / "000001" / "transfers" / "_SUCCESS"
        times: dict[str, IsTime] = {"pipeline": half_tables.exists}
        for name in NAMES:
            with losing_a_worker(folder, name, times.get(name, works.is_under_way)):
                works.do(name)
    with opened(folder / "local", "local[2]", {}) as works:
        for name in HERE_TOO:
            works.do(name)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
