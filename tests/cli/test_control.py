"""`betimes control` reports mistakes in its options before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.cli.app import run
from betimes.terminal.exit_codes import MISTAKE
from betimes.terminal.fleet import HOST

SECRET = "a secret of the control centre"


def control(folder: Path, *more: str) -> int:
    places = ["--telemetry", str(folder / "telemetry"), "--tables", str(folder / "tables")]
    secret = [] if "--control-secret" in more else ["--control-secret", str(folder / "secret")]
    return run(["control", f"mqtt://{HOST}:1883", *places, *secret, "--once", *more])


def test_what_cannot_be_done_is_said_before_spark_is_started(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("betimes.cli.control.open_spark", pytest.fail)
    (tmp_path / "secret").write_text(SECRET)
    assert control(tmp_path) == MISTAKE
    assert "telemetry: there is no such directory" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--stream", "--once"]])
def test_telemetry_is_needed_but_for_a_stream_that_goes_on(more, tmp_path, capsys):
    (tmp_path / "secret").write_text(SECRET)
    places = ["--tables", str(tmp_path / "tables"), "--control-secret", str(tmp_path / "secret")]
    assert run(["control", f"mqtt://{HOST}", *places, *more]) == MISTAKE
    assert "--telemetry" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--every", "soon"], "--every"),
        (["--every", "0s"], "must be at least 1s"),
        (["--since", "never"], "--since"),
        (["--alarm", "0.2"], "--alarm"),
        (["--late", "5m"], "needs --stream"),
        (["--control-secret", "no/such/file"], "no/such/file"),
        (["nonsense"], "an address begins with"),
    ],
)
def test_a_mistake_is_told_before_anything_is_started(more, said, tmp_path, capsys):
    (tmp_path / "secret").write_text(SECRET)
    assert control(tmp_path, *more) == MISTAKE
    assert said in capsys.readouterr().err
