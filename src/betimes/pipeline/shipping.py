"""How does Betimes' own code reach the workers of a cluster? As a zip; local workers have it already.

The packages Betimes depends on (numpy, numba, pyarrow, ...) must be installed on the workers.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import betimes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def zip_package(target: Path) -> Path:
    """Write the package's Python files into one zip, importable from it, and return its path."""
    root = Path(betimes.__file__).parent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*.py")):
            archive.write(file, Path("betimes") / file.relative_to(root))
    return target


def ship_package(spark: SparkSession) -> None:
    """Give the workers of this session the package."""
    directory = Path(tempfile.mkdtemp(prefix="betimes-ship-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    package = zip_package(directory / "betimes.zip")
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        spark.addArtifacts(str(package), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(package))
