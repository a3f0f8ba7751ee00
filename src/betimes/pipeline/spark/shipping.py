"""Sending Betimes' own code to the workers of a cluster, as a zip; local workers have it already.

The zip is named after a hash of its content: by that name workers recognise kernels that were compiled from
the same code. The packages that Betimes depends on (numpy, numba, pyarrow, ...) must be installed on the
workers.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import zipfile
from pathlib import Path

import betimes
from betimes.pipeline.spark.lazy import SparkSession

SHIPPED = {".py", ".toml"}  # a scenario is among the modules


def zip_package(directory: Path) -> Path:
    """Write the package into one importable zip, and return its path; same code, same name."""
    from betimes.kernels.compile import SHIPPED_AS  # this imports numba, which takes a while

    root = Path(betimes.__file__).parent
    files = sorted(file for file in root.rglob("*") if file.suffix in SHIPPED)
    contents = {f"betimes/{file.relative_to(root).as_posix()}": file.read_bytes() for file in files}
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    target = directory / f"{SHIPPED_AS}{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return target


def ship_package(spark: SparkSession) -> None:
    """Send the package to the workers of this session."""
    directory = Path(tempfile.mkdtemp(prefix="betimes-ship-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    package = zip_package(directory)
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        spark.addArtifacts(str(package), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(package))
