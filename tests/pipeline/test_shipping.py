"""Is the zip that goes to a cluster importable?"""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from betimes.pipeline.shipping import ship_package, zip_package


def test_the_zip_is_importable_and_holds_every_room(tmp_path):
    package = zip_package(tmp_path / "betimes.zip")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import betimes.model.errors as m; print(m.__file__)"
    said = subprocess.run(
        [sys.executable, "-S", "-c", code, str(package)], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith(str(package))
    with zipfile.ZipFile(package) as archive:
        rooms = {name.split("/")[1] for name in archive.namelist()}
    assert {"model", "qos", "node", "simulator", "pipeline"} <= rooms


@pytest.mark.spark
def test_the_package_is_added_to_the_session(spark):
    ship_package(spark)
    assert any(path.endswith("betimes.zip") for path in spark.sparkContext.listFiles)
