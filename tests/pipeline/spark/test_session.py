"""Does Spark open, and is it said clearly and soon when it cannot?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from betimes.model.errors import SettingError
from betimes.pipeline.spark import session as session_module
from betimes.pipeline.spark.session import (
    SessionError,
    cores,
    host_ports,
    is_local,
    is_remote,
    open_session,
    session_settings,
    start_s,
)

OPEN_AND_COUNT = """
from betimes.pipeline.spark.session import open_session
spark = open_session("test", master="local[1]")
print("rows", spark.range(7).mapInArrow(lambda batches: batches, "id long").count())
"""


@pytest.mark.spark
def test_the_session_runs_python_of_this_interpreter(spark):
    def executable(batches):
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    found = spark.range(1).mapInArrow(executable, "python string").collect()
    assert {row.python for row in found} == {sys.executable}
    assert start_s(spark) > 0
    assert not is_remote(spark)
    assert cores(spark) == 2


@pytest.mark.spark
def test_a_second_call_returns_the_open_session(spark):
    assert open_session("another", master="local[2]").sparkContext is spark.sparkContext
    assert open_session("another").sparkContext is spark.sparkContext


@pytest.mark.spark
def test_a_second_call_with_another_master_is_refused(spark):
    with pytest.raises(SettingError, match="already open"):
        open_session("another", master="local[7]")


@pytest.mark.spark
def test_spark_opens_quietly_without_a_system_java(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "env", "ps", "sed", "cat", "uname", "readlink", "ls"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    environment = {"PATH": str(tools), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", OPEN_AND_COUNT],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "rows 7\n"), done.stderr
    assert done.stderr == ""
    assert "java-" in next((tmp_path / ".cache" / "betimes").iterdir()).name


def test_master_and_remote_exclude_each_other():
    with pytest.raises(SettingError, match="--master local"):
        open_session("test", master="local", remote="sc://somewhere")


def test_an_unreachable_master_is_told_within_seconds():
    began_s = time.monotonic()
    with pytest.raises(SessionError, match=r"(?s)cannot be reached.*without --master"):
        open_session_elsewhere(master="spark://127.0.0.1:1")
    assert time.monotonic() - began_s < 10


def test_an_unreachable_connect_server_is_told_within_seconds(monkeypatch):
    monkeypatch.setattr(session_module, "_importable", lambda name: True)
    with pytest.raises(SessionError, match=r"(?s)cannot be reached.*without --remote"):
        open_session("test", remote="sc://127.0.0.1:1")


def test_missing_connect_packages_are_named(monkeypatch):
    monkeypatch.setattr(session_module, "_importable", lambda name: name != "grpc")
    with pytest.raises(SessionError, match=r"not installed \(grpc\)"):
        open_session("test", remote="sc://127.0.0.1:1")


def test_a_start_that_hangs_is_given_up():
    with pytest.raises(SessionError, match="has not started within 0 s"):
        session_module._within(0.05, lambda: time.sleep(1), "a snail")


def test_a_start_that_fails_is_told_in_one_line():
    def fail():
        raise OSError("no room\nand more")

    with pytest.raises(SessionError, match=r"Spark does not start: no room"):
        session_module._within(5, fail, "Spark")


@pytest.mark.parametrize("address", ["spark://", "spark://host:x", "sc://host:99999"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(SettingError, match="HOST:PORT"):
        host_ports(address)


def test_only_this_process_is_local():
    assert [is_local(master) for master in ("local", "local[*]", "local-cluster[2,1,1024]", "yarn")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_cluster_keeps_its_own_network_settings():
    assert "spark.driver.host" in session_settings("x", "local[2]")
    assert "spark.driver.host" not in session_settings("x", "spark://host:7077")


@pytest.mark.spark
def test_java_keeps_what_it_compiled(spark):
    pools = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName())
    assert room > 200 << 20


def open_session_elsewhere(master):
    """Open a session as if none were open in this process."""
    from pyspark import SparkContext

    kept, SparkContext._active_spark_context = SparkContext._active_spark_context, None
    try:
        return open_session("test", master=master)
    finally:
        SparkContext._active_spark_context = kept
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


@pytest.mark.parametrize(
    ("given", "named"), [({"master": "blah"}, "--master = 'blah'"), ({"remote": "blah"}, "--remote = 'blah'")]
)
def test_an_address_that_is_none_is_refused_before_anything_starts(given, named):
    with pytest.raises(SettingError, match=re.escape(named)):
        open_session("x", **given)
