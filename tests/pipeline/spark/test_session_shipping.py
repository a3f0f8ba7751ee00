"""Is the zip that goes to a cluster importable?"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from betimes.pipeline.spark.session import ship_package, zip_package


@pytest.mark.long
def test_the_zip_is_importable_and_holds_every_room(tmp_path):
    package = zip_package(tmp_path)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import betimes.model.errors as m; print(m.__file__)"
    said = subprocess.run(
        [sys.executable, "-S", "-c", code, str(package)], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith(str(package))
    with zipfile.ZipFile(package) as archive:
        rooms = {name.split("/")[1] for name in archive.namelist()}
        assert "betimes/demo/flights.toml" in archive.namelist()
    assert {"model", "matching", "scheduling", "simulator", "pipeline"} <= rooms


@pytest.mark.spark
def test_the_package_is_added_to_the_session(spark):
    ship_package(spark)
    assert any(Path(path).name.startswith("betimes-") for path in spark.sparkContext.listFiles)


COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
from betimes.scheduling.success import forward_delay_mean_s as kernel
kernel(1.0, 2.0, 3.0)
assert sys.argv[1] in kernel.py_func.__code__.co_filename
print("found" if kernel.stats.cache_hits else "compiled")
"""


@pytest.mark.long
def test_what_one_worker_compiled_another_finds_though_its_zip_lies_elsewhere(tmp_path):
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        package = zip_package(tmp_path / name)
        environment = dict(os.environ) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        command = [sys.executable, "-c", COMPILE, str(package)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        found.append(done.stdout.strip())
    assert found == ["compiled", "found"]


@pytest.mark.long
def test_a_worker_without_a_place_to_keep_anything_compiles_for_itself(tmp_path):
    (tmp_path / "cache").write_text("a file, no folder")
    environment = dict(os.environ) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", COMPILE, str(zip_package(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "compiled"
