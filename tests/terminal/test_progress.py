"""Is it seen that work goes on, on a terminal and elsewhere, and never on standard output?"""

from __future__ import annotations

import io
import sys

from betimes.terminal.progress import plain_progress, progress_bar, waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_away_from_a_terminal_lines_come_now_and_then(capsys):
    clock = iter([0.0, 1.0, 2.0, 11.0, 12.0, 13.0])
    advance = plain_progress("runs", now_s=lambda: next(clock))
    for done in (0, 1, 2, 3):
        advance(done, 3)
    advance(3, 3)
    assert capsys.readouterr().err.splitlines() == ["runs: 0 of 3", "runs: 2 of 3", "runs: 3 of 3"]


def test_a_bar_writes_to_standard_error_only(capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("runs") as advance:
        advance(1, 2)
        advance(2, 2)
    assert "runs" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_without_a_terminal_the_bar_is_plain(capsys):
    with progress_bar("runs") as advance:
        advance(0, 2)
        advance(2, 2)
    assert capsys.readouterr().err == "runs: 0 of 2\nruns: 2 of 2\n"


def test_waiting_is_said_on_standard_error(capsys, monkeypatch):
    with waiting("starting"):
        pass
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "starting ...\n")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with waiting("starting"):
        pass
    assert "starting" in terminal.getvalue()


def test_a_plain_line_is_not_said_twice(capsys):
    now = iter(range(0, 1000, 20))
    advance = plain_progress("runs", lambda: float(next(now)))
    for done in (0, 0, 0, 5, 5, 9, 9):
        advance(done, 9)
    assert [line.split(":")[1].split()[0] for line in capsys.readouterr().err.splitlines()] == ["0", "5", "9"]
