"""What of broadcasts does a classic session hold in files?"""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from betimes.pipeline.match.shared_set import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GONE_S_MAX = 60.0


def broadcast_files(spark: SparkSession) -> set[str]:
    """Return the files of Python's broadcasts, which are the only ones in PySpark's folder."""
    context: Any = spark.sparkContext
    return {path.name for path in Path(context._temp_dir).iterdir()}


def is_collected(spark: SparkSession, before: set[str]) -> bool:
    """Wait until Java has collected what nothing refers to; return whether no file is left."""
    java: Any = spark.sparkContext._jvm
    deadline_s = time.monotonic() + GONE_S_MAX
    while broadcast_files(spark) - before and time.monotonic() < deadline_s:
        gc.collect()
        java.System.gc()
        time.sleep(0.2)
        sweep()
    return not broadcast_files(spark) - before
