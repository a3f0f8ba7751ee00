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
from dataclasses import dataclass
from pathlib import Path

import pyspark

from betimes.pipeline.java import find_java

START_S_MAX = 60.0
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A master, and workers in process groups of their own, with the executors they start."""

    address: str
    workers: list[subprocess.Popen[bytes]]

    def kill_worker(self) -> None:
        """Take one worker away, with its executor and all that it holds."""
        end(self.workers.pop())


def environment() -> dict[str, str]:
    """Return what processes of a cluster on this machine need to know."""
    settings = {
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    return dict(os.environ) | settings


@contextmanager
def cluster(directory: Path, workers: int = 2) -> Iterator[Cluster]:
    """Start a master and workers of one core each; stop what is left of them, by their ids."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    directory.mkdir()
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (directory / f"{len(started)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [
                    str(SPARK_CLASS),
                    f"{DEPLOY}.{name}",
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    "0",
                    *arguments,
                ],
                env=environment(),
                cwd=directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        started.append(process)
        return process

    try:
        start("master.Master", "--port", str(port))
        wait_for(port)
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(directory / "work"))
        running = [start("worker.Worker", *size, address) for _ in range(workers)]
        yield Cluster(address=address, workers=running)
    finally:
        for process in reversed(started):
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all of its group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Wait until somebody listens at a port."""
    deadline_s = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline_s:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nobody listens at port {port}")
