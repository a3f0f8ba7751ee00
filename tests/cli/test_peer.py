"""Does `betimes peer` run an overlay of processes, and tell what is wrong before it starts?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from betimes.cli.app import run

BETIMES = str(Path(sys.executable).parent / "betimes")
ROOT = Path(__file__).parents[2]
ATTRIBUTE = ["--attribute", "x:0..100"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "would reject every client"),
        (["--anonymous"], "--attribute"),
        (["--anonymous", "--attribute", "x"], "a name and a range"),
        (["--anonymous", *ATTRIBUTE, *ATTRIBUTE], "an attribute is one dimension"),
        (["--anonymous", *ATTRIBUTE, "--subscribe", "x >"], "expected"),
        (["--anonymous", *ATTRIBUTE, "--max-delay", "soon"], "--max-delay"),
        (["--anonymous", *ATTRIBUTE, "--max-delay", "3", "--metric", "time"], "this overlay measures delays"),
        (["--anonymous", *ATTRIBUTE, "--bandwidth", "7"], "from 0% to 100%"),
        (["--anonymous", *ATTRIBUTE, "--cycle", "1ms"], "between 50ms and 60s"),
        (["--anonymous", *ATTRIBUTE, "--join", "nowhere"], "no address of a peer"),
        (["--anonymous", *ATTRIBUTE, "--host", "0.0.0.0"], "needs a --secret"),
        (["--anonymous", *ATTRIBUTE, "--secret", "missing.secret"], "no such file"),
        (["missing.toml", "--anonymous"], "no such file"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(options, said, capsys):
    assert run(["peer", *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_file_says_what_all_peers_share(tmp_path, capsys):
    (tmp_path / "overlay.toml").write_text('attributes = ["x:0..1"]\nmetric = "time"\nsecret_file = "s"')
    assert run(["peer", str(tmp_path / "overlay.toml"), "--anonymous", "--max-delay", "3"]) == 2
    assert "this overlay measures delays in time" in capsys.readouterr().err
    (tmp_path / "s").write_text("short")
    assert run(["peer", str(tmp_path / "overlay.toml"), "--anonymous"]) == 2
    assert "the secret is too short" in capsys.readouterr().err


@pytest.mark.live
def test_who_joins_with_another_space_ends_and_says_why():
    common = [BETIMES, "peer", "--anonymous", "--port", "0", "--json"]
    with subprocess.Popen([*common, *ATTRIBUTE], stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None
            address = json.loads(first.stdout.readline())["address"]
            other = [*common, "--attribute", "y:0..100", "--join", address]
            refused = subprocess.run(other, capture_output=True, text=True, timeout=60, check=False)
            assert refused.returncode == 2
            assert "this overlay has x:0..100, 10 levels" in " ".join(refused.stderr.split())
        finally:
            first.terminate()
            first.wait(20)
    assert first.returncode == 0


@pytest.mark.live
def test_peers_deliver_once_and_in_time_and_mend_what_is_killed():
    """Six of them; thirty are in benchmarks/bench_peers_live.py itself."""
    command = [sys.executable, str(ROOT / "benchmarks/bench_peers_live.py"), "--peers", "6"]
    options = ["--publishers", "2", "--seconds", "2", "--mend", "8"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=240, check=True)
    found = json.loads(done.stdout)
    for phase in ("before", "after"):
        counted = found[phase]
        assert counted["wanted"] > 0
        assert (counted["missed"], counted["doubled"], counted["unwanted"]) == (0, 0, 0)
        assert counted["late"] == 0
    assert found["killed"] == 2
    assert found["mended_s"] < 8.0
