"""Are the files that the page on MQTT shows ones that a broker takes?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interop.brokers import WITHIN_S, running_broker

from betimes.language.files.server_file import read_server_file

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mqtt.md"


def test_every_file_on_the_page_can_be_read():
    shown = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    first, second = (read_server_file(text, "docs/mqtt.md") for text in shown)
    assert [door.port for door in first.doors] == [1883, 8883, 8884]
    assert [door.port for door in second.doors] == [8083]


@pytest.mark.live
def test_every_program_on_the_page_runs():
    programs = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    with running_broker() as broker:
        for program in programs:
            assert "1883" in program
            ran = subprocess.run(
                [sys.executable, "-c", program.replace("1883", str(broker.port))],
                capture_output=True,
                text=True,
                timeout=WITHIN_S,
                check=False,
            )
            assert (ran.stdout, ran.stderr) == ("traffic/a1 fast\n", "")
