"""How is a Spark cluster started for a test? A master and workers as processes here, from the pip package."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyspark

from betimes.pipeline.spark import worker_daemon
from betimes.pipeline.spark.java import Java, find_java
from betimes.pipeline.spark.session import local_java_options

START_S_MAX = 60.0
HOST = "127.0.0.1"
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"
WORKER_SIZE = ("--cores", "1", "--memory", "1g")


class Cluster:
    """A master, and workers in process groups of their own, with the executors they start."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        self._port = free_port()
        self._started: list[subprocess.Popen[bytes]] = []
        self._workers: list[subprocess.Popen[bytes]] = []
        self.address = f"spark://{HOST}:{self._port}"

    def start_master(self) -> None:
        """Start the master, and wait until it listens."""
        self._start("master.Master", "--port", str(self._port))
        wait_for(self._port)

    def start_worker(self) -> None:
        """Start one more worker, which tells the master of itself."""
        place = ("--work-dir", str(self._directory / "work"))
        self._workers.append(self._start("worker.Worker", *WORKER_SIZE, *place, self.address))

    def kill_worker(self) -> None:
        """Take the oldest worker away, with its executor and all that it holds."""
        end(self._workers.pop(0))

    def executors_started(self) -> int:
        """Return how many executors there have been, those that are gone included."""
        return len(list(self._directory.glob("work/app-*/*")))

    def end(self) -> None:
        """Stop what is left, by its ids."""
        for process in reversed(self._started):
            end(process)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        where = ("--host", HOST, "--webui-port", "0")
        with (self._directory / f"{len(self._started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(SPARK_CLASS), f"{DEPLOY}.{name}", *where, *arguments],
                env=environment(),
                cwd=self._directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._started.append(process)
        return process


@cache
def java() -> Java:
    """Return the Java of all that is started here."""
    return find_java()


def environment() -> dict[str, str]:
    """Return what processes of a cluster on this machine need to know."""
    settings = {
        "JAVA_HOME": str(java().home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_JAVA_OPTS": local_java_options(java()),
        "PYSPARK_PYTHON": sys.executable,
    }
    return dict(os.environ) | settings


@contextmanager
def cluster(directory: Path, workers: int = 2) -> Iterator[Cluster]:
    """Start a master and workers of one core each; stop what is left of them."""
    running = Cluster(directory)
    try:
        running.start_master()
        for _ in range(workers):
            running.start_worker()
        yield running
    finally:
        running.end()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all of its group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port: int = taken.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Wait until somebody listens at a port."""
    deadline_s = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline_s:
        try:
            socket.create_connection((HOST, port), timeout=1.0).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nobody listens at port {port}")


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """Start a Spark Connect server that works by itself, and return its address."""
    directory.mkdir()
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": local_java_options(java()),
        "spark.python.daemon.module": worker_daemon.MODULE,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    told = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    main = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]")
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(SPARK_CLASS), f"{DEPLOY}.SparkSubmit", *main, *told, "spark-internal"],
            env=environment(),
            cwd=directory,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        wait_for(port)
        yield f"sc://{HOST}:{port}"
    finally:
        end(server)
