"""Do the commands in docs/reservations.md do what the page says?"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.shells import WITHIN_S, shell

from betimes.language.files.scenario_file import read_scenario
from betimes.model.topology import Scenario
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reservations.md").read_text()
COMMANDS = re.findall(r"^```sh terminals\n(betimes network .*?)^```", PAGE, re.MULTILINE | re.DOTALL)[
    0
].splitlines()

pytestmark = pytest.mark.live


def test_the_commands_say_what_the_page_says():
    network, publishing, reserved, refused = COMMANDS
    file = ROOT / shlex.split(network)[2]
    scenario = read_scenario(file.read_text(), str(file))
    assert isinstance(scenario, Scenario)
    ports = dict(zip(scenario.brokers, free_ports(len(scenario.brokers)), strict=True))
    moved = {str(1883 + at): str(port) for at, port in enumerate(ports.values())}

    def typed(command: str) -> list[str]:
        return [moved.get(word, word) for word in shlex.split(command, comments=True)]

    betimes = str(Path(sys.executable).with_name("betimes"))
    line = publishing.replace("betimes pub", f"{betimes} pub").replace("1883", moved["1883"])
    with Fleet(FleetPlan(ports=ports, links=scenario.links, settings={"anonymous": True})):
        publisher = subprocess.Popen(["bash", "-c", line], start_new_session=True)
        try:
            end_s = time.monotonic() + WITHIN_S
            while True:  # until the links are up, and the publisher is known
                code, out, said = shell(*typed(reserved)[1:], "-C", "1", "-W", "10")
                if code == 0 or time.monotonic() > end_s:
                    break
                time.sleep(0.2)
            assert (code, out[-5:]) == (0, b"fast\n"), said
            assert re.search(r"cars: 20KB/s reserved, [\d.]+ms away", said)
            code, _, said = shell(*typed(refused)[1:])
            assert code == 2
            assert said.endswith(": no bandwidth; 54KB/s would fit\n")
        finally:
            subprocess.run(["kill", "--", f"-{publisher.pid}"], check=True)
            publisher.wait(WITHIN_S)


def test_the_simulation_says_what_the_page_says():
    (title, _, *rows) = re.findall(r"^```text\n(guarantees\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[
        0
    ].splitlines()
    code, out, _ = shell("simulate", str(ROOT / "examples" / "guarantees.toml"))
    assert code == 0
    shown = [re.split(r"\s{2,}", re.sub("[│┃]", "  ", line).strip()) for line in out.decode().splitlines()]
    assert [title] in shown
    assert len(rows) == 2
    for row in rows:
        assert re.split(r"\s{2,}", row) in shown
