"""Does the command begin, and end, as it should?"""

from __future__ import annotations

import builtins
import subprocess
import sys

import pytest

from betimes.cli import main as start
from betimes.terminal.exit_codes import INTERRUPTED


def test_it_runs_a_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["betimes", "--version"])
    with pytest.raises(SystemExit) as left:
        start.main()
    assert left.value.code == 0
    assert capsys.readouterr().out


def test_an_interruption_while_loading_is_told_without_a_traceback(monkeypatch, capsys):
    real = builtins.__import__

    def interrupted(name, *rest):
        if name == "betimes.cli.app":
            raise KeyboardInterrupt
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as left:
        start.main()
    assert left.value.code == INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.long
def test_what_only_some_commands_need_is_not_loaded_for_all():
    """Each command would take longer to start, and people wait for `pub` and `sub`."""
    heavy = "numba numpy pyarrow scipy pandas pyspark matplotlib nicegui"
    code = f"import sys, betimes.cli.app; print([each for each in {heavy.split()} if each in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
