"""The daemon that forks Spark's Python processes, with what tasks need imported beforehand.

Spark runs it instead of `pyspark.daemon` where `spark.python.daemon.module` names it. Spark puts archives of
its own first on the path: they hold no compiled code, and Python 3.11 reads their directories anew before
every task. Where PySpark is installed the daemon leaves them out. It also imports what most tasks need, once:
the processes of tasks are forked from this one, and its objects are frozen, so that they are not searched for
garbage.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

MODULE = "betimes.pipeline.spark.worker_daemon"
ARCHIVES = ("pyspark.zip", "py4j-", "spark-core_")
# Not Betimes itself: where Betimes was sent to a cluster, tasks must import that copy.
PRELOADED = ("pyspark.worker", "pandas", "pyarrow.parquet", "pyarrow.dataset", "scipy.special")
# A fork of a process with several threads may wait for ever for a thread that it does not have.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


def without_archives(path: Sequence[str]) -> list[str]:
    """Return a path without Spark's own archives if PySpark is installed elsewhere on it, else all of it.

    >>> without_archives(["/spark/python/lib/pyspark.zip", "/nowhere"])
    ['/spark/python/lib/pyspark.zip', '/nowhere']
    """
    kept = [each for each in path if not Path(each).name.startswith(ARCHIVES)]
    is_installed = all(any((Path(each) / name).is_dir() for each in kept) for name in ("pyspark", "py4j"))
    return kept if is_installed else list(path)


def preload() -> None:
    """Import what tasks need, where it is installed, and initialise numba."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    try:
        from numba.core import entrypoints
        from numba.core.registry import cpu_target
    except ImportError:
        return
    # What numba does before the first kernel, whether it is compiled or read from the cache.
    entrypoints.init_all()
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def main() -> None:
    """Run as Spark's daemon."""
    for name in [each for each in sys.modules if each.partition(".")[0] == "betimes"]:
        del sys.modules[name]
    sys.path[:] = without_archives(sys.path)
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    preload()
    daemon = importlib.import_module("pyspark.daemon")
    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
