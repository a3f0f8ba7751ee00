"""Does `betimes passwd` change the one line it should, and tell mistakes in one message?"""

from __future__ import annotations

import getpass
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from betimes.broker.access import passwords as passwords_module
from betimes.broker.access.passwords import PasswordFile
from betimes.cli.app import run
from betimes.cli.passwd import replace_file
from betimes.model.errors import BetimesError
from betimes.terminal.exit_codes import INTERRUPTED, MISTAKE


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Make hashes cheap: what they cost is tested elsewhere."""
    usual = passwords_module.PasswordHash.of
    cheap = passwords_module.Cost(ln=2, r=1, p=1)
    monkeypatch.setattr(passwords_module.PasswordHash, "of", lambda password, cost: usual(password, cheap))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "broker.passwords"


def from_stdin(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def asked(monkeypatch, *answers: str | BaseException) -> None:
    """Let a person at a terminal answer."""
    waiting = iter(answers)

    def answer(prompt):
        said = next(waiting)
        if isinstance(said, BaseException):
            raise said
        return said

    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(getpass, "getpass", answer)


def users_in(file: Path) -> PasswordFile:
    return PasswordFile.read(file.read_text(), "passwords")


def test_a_new_file_is_for_its_owner_alone(file, monkeypatch, capsys):
    from_stdin(monkeypatch, b"apple\n")
    assert run(["passwd", str(file), "ann", "--password-stdin"]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert users_in(file).verify("ann", b"apple")
    assert "ann added, 1 user in total" in capsys.readouterr().out
    assert list(file.parent.iterdir()) == [file]


def test_a_password_is_asked_for_twice(file, monkeypatch):
    asked(monkeypatch, "äpple", "äpple")
    assert run(["passwd", str(file), "ann"]) == 0
    assert users_in(file).verify("ann", "äpple".encode())


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        (("apple", "pear"), MISTAKE, "the two passwords differ"),
        (("",), MISTAKE, "a password cannot be empty"),
        ((EOFError(),), MISTAKE, "the input ended before the password"),
        (("\ud800",), MISTAKE, "not text"),
        ((KeyboardInterrupt(),), INTERRUPTED, "interrupted"),
    ],
)
def test_without_two_equal_passwords_nothing_is_changed(file, monkeypatch, capsys, answers, code, said):
    asked(monkeypatch, *answers)
    assert run(["passwd", str(file), "ann"]) == code
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not file.exists()


def test_other_lines_and_the_mode_are_kept(file, monkeypatch, capsys):
    text = "# people\n" + PasswordFile().with_user("ann", b"apple").with_user("bob", b"pear").text()
    file.write_text(text)
    file.chmod(0o640)
    from_stdin(monkeypatch, b"plum")
    assert run(["passwd", str(file), "ann", "--password-stdin", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "file": str(file),
        "user": "ann",
        "done": "changed",
        "users": 2,
    }
    lines, old = file.read_text().splitlines(), text.splitlines()
    assert [lines[0], lines[2]] == [old[0], old[2]]
    assert users_in(file).verify("ann", b"plum")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_link_to_the_file_stays_a_link(file, tmp_path, monkeypatch):
    link = tmp_path / "link"
    file.touch()
    link.symlink_to(file)
    from_stdin(monkeypatch, b"apple\r\n")
    assert run(["passwd", str(link), "ann", "--password-stdin"]) == 0
    assert link.is_symlink()
    assert users_in(file).verify("ann", b"apple")


def test_a_user_is_taken_out(file, capsys):
    file.write_text(PasswordFile().with_user("ann", b"apple").with_user("bob", b"pear").text())
    assert run(["passwd", str(file), "ann", "--delete"]) == 0
    assert "ann" not in users_in(file)
    assert "bob" in users_in(file)
    assert "ann deleted, 1 user in total" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "typed", "said"),
    [
        (["ann"], b"", "--password-stdin"),
        (["a:b", "--password-stdin"], b"apple", "no colon in it"),
        (["", "--password-stdin"], b"apple", "cannot be empty"),
        (["ann", "--password-stdin"], b"", "a password cannot be empty"),
        (["ann", "--password-stdin"], b"\n", "a password cannot be empty"),
        (["ann", "--password-stdin"], b"one\ntwo\n", "more than one line"),
        (["ann", "--password-stdin"], b"x" * 70_000, "at most 65,535 bytes"),
        (["ann", "--delete"], b"", "no such file"),
        (["ann", "--delete", "--password-stdin"], b"", "leave out --password-stdin"),
    ],
)
def test_a_mistake_is_one_message_and_makes_no_file(file, monkeypatch, capsys, arguments, typed, said):
    from_stdin(monkeypatch, typed)
    assert run(["passwd", str(file), *arguments]) == MISTAKE
    told = capsys.readouterr()
    assert said in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    assert list(file.parent.iterdir()) == []


def test_a_damaged_file_is_told_and_left_alone(file, monkeypatch, capsys):
    file.write_text("ann:apple\n")
    from_stdin(monkeypatch, b"plum")
    assert run(["passwd", str(file), "bob", "--password-stdin"]) == MISTAKE
    assert f"{file}:1: " in capsys.readouterr().err
    assert file.read_text() == "ann:apple\n"


def test_an_unknown_user_cannot_be_taken_out(file, capsys):
    file.write_text(PasswordFile().with_user("ann", b"apple").text())
    assert run(["passwd", str(file), "anne", "--delete"]) == MISTAKE
    assert "did you mean ann?" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_a_mistake(tmp_path, monkeypatch, capsys):
    from_stdin(monkeypatch, b"apple")
    assert run(["passwd", str(tmp_path / "none" / "file"), "ann", "--password-stdin"]) == MISTAKE
    assert "cannot be written (No such file or directory)" in capsys.readouterr().err
    assert run(["passwd", str(tmp_path), "ann", "--password-stdin"]) == MISTAKE
    assert "is a directory" in capsys.readouterr().err


def test_a_name_that_leads_nowhere_is_a_mistake(file, capsys):
    file.symlink_to(file)
    for name, said in ((str(file), "symbolic link to itself"), (str(file.parent / ("x" * 300)), "too long")):
        assert run(["passwd", name, "ann", "--delete"]) == MISTAKE
        assert said in capsys.readouterr().err


def test_a_failed_write_leaves_the_old_file_and_nothing_else(file, monkeypatch):
    file.write_text("old")

    def fail(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BetimesError, match="No space left"):
        replace_file(file, "new")
    assert file.read_text() == "old"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.long
def test_a_closed_standard_input_is_a_mistake(file):
    command = f"{sys.executable} -c 'from betimes.cli.main import main; main()' passwd {file} ann"
    for option in ("", " --password-stdin"):
        done = subprocess.run(
            ["bash", "-c", f"{command}{option} <&-"], capture_output=True, text=True, check=False
        )
        assert done.returncode == MISTAKE
        assert "Traceback" not in done.stderr
    assert not file.exists()
