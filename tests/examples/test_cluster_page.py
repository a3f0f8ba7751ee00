"""Do the commands and the settings of the page on clusters make a cluster that a command runs on?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline.clusters import HOST, end, environment, free_port, wait_for

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "cluster.md").read_text()
STARTING, TRYING, CONNECTING = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(SETTINGS,) = re.findall(r"^```properties\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
WITHIN_S = 180.0


@pytest.mark.spark
def test_the_page_starts_a_cluster_and_a_server_before_it(tmp_path):
    port, connect_port = free_port(), free_port()
    (tmp_path / "spark-defaults.conf").write_text(
        f"{SETTINGS}\nspark.connect.grpc.binding.port {connect_port}\nspark.ui.enabled false\n"
    )
    settings = environment() | {"SPARK_CONF_DIR": str(tmp_path), "SPARK_WORKER_DIR": str(tmp_path / "work")}
    settings["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    home, *daemons = STARTING.splitlines()
    running: list[subprocess.Popen[bytes]] = []

    def here(command: str) -> str:
        return command.replace("head", HOST).replace("7077", str(port))

    def start(command: str) -> None:
        running.append(
            subprocess.Popen(
                ["bash", "-c", f"{home}; exec {here(command)}"],
                env=settings,
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    try:
        for daemon in daemons:
            start(daemon)
            wait_for(port)
        start(CONNECTING)
        wait_for(connect_port)
        # At the server, whose driver is the cluster's: with --master, tests/pipeline try more than this.
        command = TRYING.replace("--master spark://head:7077", f"--remote sc://{HOST}:{connect_port}")
        assert command != TRYING
        done = subprocess.run(
            command.split(), env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN_S,
            check=False,
        )  # fmt: skip
        assert (done.returncode, "first_task_s" in done.stdout) == (0, True), done.stderr
        heaps = [each for each in (tmp_path / "work").rglob("stderr") if "-Xmx512M" in each.read_text()]
        assert heaps  # the settings of the page
    finally:
        for process in running:
            end(process)
