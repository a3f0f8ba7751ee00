"""Does a command end with the right code, and with one message for a mistake?"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from betimes import __version__
from betimes.cli import app as app_module
from betimes.cli import filter as filter_module
from betimes.cli.app import command_names, run
from betimes.cli.main import main
from betimes.model.errors import BetimesError
from betimes.terminal.exit_codes import BUG, INTERRUPTED, MISTAKE


def test_the_version_is_printed_and_all_is_well(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"betimes {__version__}\n"


@pytest.mark.long
def test_every_command_has_help_with_examples(capsys):
    for name in command_names():
        assert run([name, "--help"]) == 0
        said = capsys.readouterr().out
        assert f"betimes {name}" in said
        assert "Examples" in said


def test_a_users_mistake_is_one_message_without_traceback(capsys):
    assert run(["filter", "speed >"]) == MISTAKE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "arguments", [["no-such-command"], ["filter"], ["filter", "a = 1", "--no-such-option"]]
)
def test_a_wrong_command_line_is_a_mistake(arguments, capsys):
    assert run(arguments) == MISTAKE
    assert "Traceback" not in capsys.readouterr().err


def ending_with(error):
    def fail(text):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BetimesError("a [bold] mistake"), MISTAKE, "error: a [bold] mistake\n"),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted\n"),
        (SystemExit(1), 1, ""),
    ],
)
def test_each_way_to_end_has_its_code(monkeypatch, capsys, error, code, said):
    monkeypatch.setattr(filter_module, "parse_filter", ending_with(error))
    assert run(["filter", "a = 1"]) == code
    assert capsys.readouterr().err == said


def test_a_bug_shows_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr(filter_module, "parse_filter", ending_with(ZeroDivisionError()))
    assert run(["filter", "a = 1"]) == BUG
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "a bug in Betimes" in said


def test_what_fails_while_an_interrupt_is_handled_is_no_bug(monkeypatch, capsys):
    def fail(text):
        try:
            raise KeyboardInterrupt
        finally:
            raise ZeroDivisionError

    monkeypatch.setattr(filter_module, "parse_filter", fail)
    assert run(["filter", "a = 1"]) == INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


def test_main_leaves_with_the_code(monkeypatch):
    monkeypatch.setattr(app_module, "run", lambda: 7)
    with pytest.raises(SystemExit) as leaving:
        main()
    assert leaving.value.code == 7


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_bug():
    command = f"'{sys.executable}' -c 'from betimes.cli.main import main; main()' filter 'a = 1' | true"
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 141}  # 0 where all was written before the reader left
    assert done.stderr == ""


@pytest.mark.long
@pytest.mark.parametrize(("redirect", "code"), [("> /dev/full", MISTAKE), (">&-", 0)])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_goes_nowhere_is_no_bug(redirect, code, unbuffered):
    command = f"{sys.executable} -c 'from betimes.cli.main import main; main()' figures {redirect}"
    settings = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=settings)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
