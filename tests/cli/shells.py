"""How do tests run the commands as a person does? As processes, with everything they print."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

WITHIN_S = 60.0  # far more than anything takes
COMMAND = [sys.executable, "-c", "from betimes.cli.main import main; main()"]


def shell(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
    """Run a command to its end: exit code, standard output, standard error."""
    done = subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, timeout=WITHIN_S, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode, done.stdout, done.stderr.decode()


@contextmanager
def listening(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `betimes sub --verbose`, and go on when it has subscribed."""
    command = [*COMMAND, "sub", "--verbose", *arguments]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert running.stderr is not None
        said = running.stderr.readline()
        assert said.startswith(b"subscribed to "), said
        yield running
    finally:
        running.kill()
        running.communicate()
