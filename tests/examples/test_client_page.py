"""Do the program and the commands in docs/client.md do what the page says?"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.shells import WITHIN_S, shell
from tests.cli.test_broker import started

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(PRINTED,) = re.findall(r"^prints `([^`]+)`", PAGE, re.MULTILINE)

pytestmark = pytest.mark.live


@pytest.mark.parametrize("program", PROGRAMS, ids=["with an event loop", "without"])
def test_the_programs_print_what_the_page_says(program):
    with started("--anonymous") as (_, port):
        assert "127.0.0.1:1883" in program
        program = program.replace("127.0.0.1:1883", f"127.0.0.1:{port}")
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
        assert (done.stdout, done.stderr) == (f"{PRINTED}\n", "")


def test_the_commands_print_what_the_page_says():
    pub, verbose, as_json = (shlex.split(line) for line in COMMANDS.splitlines())
    with started("--anonymous") as (_, port):
        here = ["-p", str(port)]
        assert shell(*pub[1:], *here) == (0, b"", "")
        code, out, _ = shell(*verbose[1:], *here)
        assert code == 0
        assert re.fullmatch(rb"traffic/a4 betimes:\d+ [\d.]+(ms|s) fast\n", out)
        code, out, _ = shell(*as_json[1:], *here)
        assert (code, json.loads(out)["payload"]) == (0, "fast")
