"""How is a page run whose ports somebody else may have? A `betimes` on the path moves them all by as much."""

from __future__ import annotations

import os
import random
import socket
import stat
import sys
from pathlib import Path

PORTS = (*range(1883, 1889), *range(4001, 4004))  # that pages name, or mean where they name none
SCRIPT = """\
#!{python}
import re, sys
from betimes.cli.main import main

words = [re.sub(r"(?<![0-9])(188[0-9]|400[0-9])(?![0-9])", lambda found: str(int(found[0]) + {by}), word)
         for word in sys.argv[1:]]
if words[0] in ("broker", "network", "pub", "sub") and not {{"-p", "--port"}} & set(words):
    words += ["--port", str(1883 + {by})]
sys.argv[1:] = words
main()
"""


def moving_commands(folder: Path) -> Path:
    """Write the command to a folder, and return that."""
    folder.mkdir()
    script = folder / "betimes"
    script.write_text(SCRIPT.format(python=sys.executable, by=_free_move()))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def _free_move() -> int:
    chance = random.Random(os.getpid())
    for _ in range(100):
        by = chance.randrange(10_000, 25_000)
        if all(_is_free(port + by) for port in PORTS):
            return by
    raise AssertionError("there are no free ports")


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False
