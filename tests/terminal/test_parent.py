"""Does a child process end when its parent is killed?"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from betimes.terminal.parent import ENDS_WITH_STDIN, child_options, end_with_parent

CHILD = "import time; from betimes.terminal.parent import end_with_parent; end_with_parent(); time.sleep(60)"
PARENT = f"""
import subprocess, sys, time
from betimes.terminal.parent import child_options
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], start_new_session=True, **child_options())
print(child.pid, flush=True)
time.sleep(60)
"""


def is_running(process: int) -> bool:
    """Tell whether a process runs; one that has ended may wait for a parent that does not ask."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_ends_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.2)
    assert is_running(child)
    parent.kill()
    parent.communicate()
    end_s = time.monotonic() + 30.0
    while is_running(child) and time.monotonic() < end_s:
        time.sleep(0.05)
    assert not is_running(child)


def test_a_child_goes_on_as_long_as_its_parent_does():
    with subprocess.Popen([sys.executable, "-c", CHILD], **child_options()) as child:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(30.0) == -signal.SIGTERM


def test_who_was_started_otherwise_does_not_heed_its_standard_input(monkeypatch):
    monkeypatch.delenv(ENDS_WITH_STDIN, raising=False)
    end_with_parent()
