"""Writing the archive of Spark classes that later starts read (`pipeline/spark/java.py`)."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from betimes.pipeline.spark.java import archive_file, find_java, writing_option
from betimes.pipeline.spark.lazy import F, SparkSession, Window


def write_archive() -> Path:
    """Open Spark, use the parts that most work uses, and keep the classes; delete archives of other versions.

    There must be no session in this process yet. A TimeoutExpired means that Java did not exit.
    """
    from pyspark import SparkContext

    from betimes.pipeline.spark.session import LOCAL_JAVA_OPTIONS, open_session

    java = find_java()
    archive = archive_file(java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as place:
        written = Path(place) / archive.name
        options = f"{LOCAL_JAVA_OPTIONS} {writing_option(java, written)}"
        spark = open_session(
            "betimes", master="local[2]", settings={"spark.driver.extraJavaOptions": options}
        )
        _exercise(spark, Path(place))
        spark.stop()
        gateway, SparkContext._gateway = SparkContext._gateway, None
        assert gateway is not None
        process: subprocess.Popen[bytes] = gateway.proc
        gateway.shutdown()
        assert process.stdin is not None
        process.stdin.close()  # whereupon Java exits
        process.wait(WRITE_S_MAX)
        for old in archive.parent.glob("spark-*.jsa"):
            old.unlink()
        written.replace(archive)
    return archive


WRITE_S_MAX = 600.0


def _exercise(spark: SparkSession, place: Path) -> None:
    """Use what most work uses: files, joins, sums, windows, and tasks in Python."""
    from betimes.pipeline.sweeps.sweep import run_sweep

    run_sweep(spark, [{"x": 1}], dict)
    rows = spark.range(1000).select("id", (F.col("id") % 7).alias("key"), F.lit("text").alias("name"))
    rows.write.parquet(str(place / "rows"))
    read = spark.read.parquet(str(place / "rows"))
    sums = read.groupBy("key").agg(F.count("*").alias("count"), F.countDistinct("id"), F.max("name"))
    ranked = read.withColumn("rank", F.row_number().over(Window.partitionBy("key").orderBy("id")))
    joined = ranked.join(sums, on="key", how="left").join(read.limit(5), on="id", how="left_anti")
    joined.orderBy("rank").write.partitionBy("key").json(str(place / "joined"))
    read.unionByName(read).dropDuplicates(["id"]).cache().toArrow()
