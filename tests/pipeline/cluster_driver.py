"""What does a program do on a cluster whose workers die? All kinds of work; and elsewhere, the same here.

`python -m tests.pipeline.cluster_driver MASTER FOLDER`: results go to FOLDER/cluster, or to FOLDER/local for
a master `local[...]`. On a cluster, in the midst of each kind of work FOLDER/NAME.now appears, and whoever
watches takes a worker away and answers with FOLDER/NAME.gone.
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

from betimes.console.experiment import make_plan, run_figure
from betimes.experiments.catalogue import FIGURES
from betimes.pipeline import session
from betimes.pipeline.job import run_pipeline
from betimes.pipeline.match_files import MatchRequest, match_files
from betimes.pipeline.match_plans import MatchSettings
from betimes.pipeline.sweeps import run_sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("sweep", "pipeline", "match", "figure")
FIGURE = "carvalho-4e-f"
LOOK_EVERY_S = 0.02
FAST_JAVA = {
    "spark.driver.extraJavaOptions": session.LOCAL_JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": session.LOCAL_JAVA_OPTIONS,
}
SETTINGS = FAST_JAVA | {
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    # What a dead worker held is asked for once: the others are on this machine, and answer or are gone.
    "spark.shuffle.io.maxRetries": "0",
    "spark.locality.wait": "0",
}
IsTime = Callable[[], bool]


def slow_square(row: Mapping[str, Any]) -> dict[str, Any]:
    time.sleep(0.3)
    return {"square": row["x"] ** 2}


class Works:
    """The kinds of work, each by its name; tables come from one folder and go to another."""

    def __init__(self, spark: SparkSession, folder: Path, place: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._place = place

    def sweep(self) -> None:
        """Run a plain function for many rows."""
        rows = [{"x": x} for x in range(12)]
        run_sweep(self._spark, rows, slow_square, rows_per_task=2, out=self._place / "sweep")

    def pipeline(self) -> None:
        """Turn telemetry into tables."""
        run_pipeline(self._spark, self._folder / "telemetry", self._place / "pipeline")

    def match(self) -> None:
        """Match with one index for all subscriptions, and with cells."""
        for name, index_mb in (("whole", 512.0), ("divided", 0.02)):
            request = MatchRequest(
                events=str(self._folder / "events.parquet"),
                subscriptions=str(self._folder / "wishes.parquet"),
                out=self._place / name,
                settings=MatchSettings(index_mb_max=index_mb, tasks=4),
            )
            match_files(self._spark, request)

    def figure(self) -> None:
        """Run a figure of a paper, as `betimes figure` does."""
        run_figure(FIGURES[FIGURE], make_plan(1, 1, quick=True), self._place / "figure")


def is_under_way(spark: SparkSession) -> bool:
    """Tell whether a job is running of which a task is done: a dead worker then holds some of it."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return any(each.numCompletedTasks for each in stages if each)


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
    """Do everything at a master; write down how long each took."""
    is_local = master.startswith("local")
    place, took_s, began_s = folder / ("local" if is_local else "cluster"), {}, time.monotonic()
    # Workers here have Betimes already, with its kernels compiled.
    session.ship_package = lambda spark: None  # type: ignore[attr-defined]
    spark = session.open_session("test", master=master, settings={} if is_local else SETTINGS)
    took_s["open"] = round(time.monotonic() - began_s, 1)
    half_tables = place / "pipeline" / "runs" / "000001" / "transfers" / "_SUCCESS"
    times: dict[str, IsTime] = {"pipeline": half_tables.exists}
    for name in NAMES:
        began_s = time.monotonic()
        work: Callable[[], None] = getattr(Works(spark, folder, place), name)
        if is_local:
            work()
        else:
            with losing_a_worker(folder, name, times.get(name, lambda: is_under_way(spark))):
                work()
        took_s[name] = round(time.monotonic() - began_s, 1)
    (place / "took_s.json").write_text(json.dumps(took_s, indent=2))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
