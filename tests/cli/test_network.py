"""Does `betimes network` start what a topology says, and say what is wrong with it?"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from betimes.cli.app import run as run_here
from betimes.terminal.fleet import FleetPlan, free_ports

BETIMES = str(Path(sys.executable).with_name("betimes"))
TOPOLOGY = """
[[brokers]]
name = "a"
[[brokers]]
name = "b"
[[links]]
from = "a"
to = "b"
rate = "50KB/s"
"""
WITHIN_S = 60.0


@pytest.fixture
def topology(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(TOPOLOGY)
    return path


def run(*arguments):
    command = [BETIMES, "network", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)


@pytest.mark.long
def test_nobody_could_connect(topology):
    ran = run(str(topology))
    assert ran.returncode == 2
    assert "would reject every client" in ran.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--strategy", "best"], "no such strategy"),
        (["--port", "65535"], "must leave room for 2 ports"),
        (["--port", "-1"], "must leave room"),
    ],
)
def test_a_bad_setting_is_a_mistake(topology, arguments, problem):
    ran = run(str(topology), "--anonymous", *arguments)
    assert ran.returncode == 2
    assert problem in ran.stderr


@pytest.mark.long
def test_a_topology_with_mistakes_lists_them(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(TOPOLOGY.replace('to = "b"', 'to = "c"'))
    ran = run(str(path), "--anonymous")
    assert ran.returncode == 2
    assert "there is no broker `c`" in ran.stderr


def port_with_a_neighbour():
    """Return a port that is free, and the next one with it."""
    while True:
        for port in free_ports(20):
            try:
                socket.create_server(("127.0.0.1", port + 1)).close()
            except OSError:
                continue
            return port


@pytest.mark.live
def test_brokers_run_until_they_are_told_to_end(topology):
    first = port_with_a_neighbour()
    process = subprocess.Popen(
        [BETIMES, "network", str(topology), "--anonymous", "--port", str(first)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        end_s = time.monotonic() + WITHIN_S
        for port in (first, first + 1):
            while time.monotonic() < end_s:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
                    break
                except OSError:
                    time.sleep(0.1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=WITHIN_S)
    finally:
        process.kill()
    assert process.returncode == 0
    assert f"127.0.0.1:{first + 1}" in said
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", first + 1), timeout=1.0)


@pytest.mark.long
def test_what_is_wrong_is_told_once(topology, tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    for option in ("--store", "--telemetry"):
        ran = run(str(topology), "--anonymous", "--port", "0", option, str(taken))
        assert (ran.returncode, ran.stderr.count("error:")) == (2, 1)
        assert "cannot create the directory" in ran.stderr
    ran = run(str(topology), "--port", "0", "--passwords", str(tmp_path / "missing"))
    assert (ran.returncode, ran.stderr.count("error:")) == (2, 1)


@pytest.mark.parametrize("option", ["--port", "--metrics-port"])
def test_a_port_that_is_taken_is_told_once_before_any_broker_is_started(
    topology, option, monkeypatch, capsys
):
    monkeypatch.setattr("betimes.cli.network.Fleet", None)
    first = port_with_a_neighbour()
    with socket.create_server(("127.0.0.1", first + 1)):
        ports = ["--port", "0", option, str(first)]  # what is said last holds
        assert run_here(["network", str(topology), "--anonymous", *ports]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: 127.0.0.1:{first + 1}: cannot listen there")
    assert said.endswith(f"hint: pass another one with {option}\n")


def test_metrics_are_not_where_mqtt_is(topology, capsys):
    first = port_with_a_neighbour()
    ports = ["--port", str(first), "--metrics-port", str(first + 1)]
    assert run_here(["network", str(topology), "--anonymous", *ports]) == 2
    said = capsys.readouterr().err
    assert f"port {first + 1} is an MQTT port\nhint: for example {first + 2}" in said


@pytest.mark.long
def test_metrics_have_a_port_for_each_broker_if_they_are_asked_for(monkeypatch, capsys):
    plans: list[FleetPlan] = []
    monkeypatch.setattr("betimes.cli.network.run_network", plans.append)
    monkeypatch.setattr("betimes.cli.network.check_free", lambda *_: None)  # others may be there
    city = ["network", str(Path(__file__).resolve().parents[2] / "examples" / "city.toml"), "--anonymous"]
    assert run_here(city) == 0
    assert run_here([*city, "--metrics-port", "9101"]) == 0
    without, with_metrics = plans
    assert without.own_settings == {}
    assert [each["metrics_port"] for each in with_metrics.own_settings.values()] == list(range(9101, 9107))
    assert run_here([*city, "--metrics-port", "65535"]) == 2
    assert "--metrics-port" in capsys.readouterr().err
