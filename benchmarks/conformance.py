"""Does the broker keep the standard? Eclipse Paho's interoperability suites, for MQTT 5 and for 3.1.1.

They are not on PyPI: `git clone https://github.com/eclipse-paho/paho.mqtt.testing`, and name that folder.
Each suite gets one broker for all of its tests, one after another, each in a process of its own; the suites,
and the peers, run side by side. The broker is set up as the tests want it: a keep alive of 60 s at most, and
a topic that nobody may subscribe to.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mqtt_brokers import betimes, free_port, installed, mosquitto, started
from rich.console import Console
from rich.table import Table

SUITES = {"MQTT 5": "client_test5.py", "MQTT 3.1.1": "client_test.py"}
OURS = "betimes"
PEERS = (OURS, "mosquitto")
TEST_S_MAX = 120.0  # the longest takes about 35 s, nearly all of it asleep
KEEP_ALIVE_S_MAX = 60
ACCESS = "topic readwrite #\ntopic deny test/nosubscribe\n"
PORT_LINE = "port = 1883"  # as both suites have it; only one of them lets an option change it
SAID_MAX = 2000  # letters of what a failed test printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one test against one broker."""

    suite: str
    test: str
    peer: str
    passed: bool
    said: str


def folder_of_suites(checkout: Path) -> Path:
    """Return where the suites are in a checkout; end with a hint if they are not."""
    for folder in (checkout / "interoperability", checkout):
        if all((folder / each).is_file() for each in SUITES.values()):
            return folder
    sys.exit(
        f"{checkout}: no {' and '.join(SUITES.values())} in it or in its folder interoperability; "
        "name a checkout of https://github.com/eclipse-paho/paho.mqtt.testing"
    )


def tests_in(text: str) -> list[str]:
    """Return the names of a suite's tests, in its order."""
    return re.findall(r"^ +def (test\w*)\(self\)", text, flags=re.MULTILINE)


def on_port(text: str, port: int) -> str:
    """Return a suite that talks to the broker at this port."""
    if text.count(PORT_LINE) != 1:
        sys.exit(f"this version of the suites does not say {PORT_LINE!r} once: where is its port?")
    return text.replace(PORT_LINE, f"port = {port}")


def command(peer: str, folder: Path, port: int) -> list[str]:
    """Return how to start a broker as the tests want it."""
    access = folder / "access"
    access.write_text(ACCESS)
    if peer == "mosquitto":
        lines = (f"acl_file {access}", f"max_keepalive {KEEP_ALIVE_S_MAX}")
        return mosquitto(folder / "mosquitto.conf", port, *lines)
    config = folder / "betimes.toml"
    config.write_text(
        f'port = {port}\nanonymous = true\naccess = "access"\ndiscreet = true\n'
        f'[limits]\nkeep_alive = "{KEEP_ALIVE_S_MAX}s"\n'
    )
    return betimes(str(config))


def run_test(script: Path, suites: Path, test: str) -> tuple[bool, str]:
    """Run one test in a process of its own; return whether it passed, and what it said."""
    try:
        done = subprocess.run(
            [sys.executable, str(script), f"Test.{test}"],
            env={**os.environ, "PYTHONPATH": str(suites)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TEST_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"not finished after {TEST_S_MAX:.0f} s"
    # A suite that was given no test that it knows would end well too.
    passed = done.returncode == 0 and "Ran 1 test" in done.stderr
    return passed, (done.stdout + done.stderr)[-SAID_MAX:]


def run_suite(peer: str, suite: str, suites: Path, only: str) -> list[Outcome]:
    """Run the tests of one suite against one broker."""
    text = (suites / SUITES[suite]).read_text(encoding="utf-8")
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        script = folder / SUITES[suite]
        script.write_text(on_port(text, port), encoding="utf-8")
        with started(command(peer, folder, port), port):
            for test in tests_in(text):
                if only not in test:
                    continue
                passed, said = run_test(script, suites, test)
                outcomes.append(Outcome(suite=suite, test=test, peer=peer, passed=passed, said=said))
                print(f"{peer}, {suite}, {test}: {_word(passed)}", file=sys.stderr, flush=True)
    return outcomes


def _word(passed: bool) -> str:
    return "passed" if passed else "FAILED"


def show(outcomes: list[Outcome], peers: list[str]) -> None:
    table = Table(title="Eclipse Paho's interoperability suites")
    for column in ("suite", "test", *peers):
        table.add_column(column)
    by_place = {(each.suite, each.test, each.peer): each for each in outcomes}
    for suite in SUITES:
        tests = list(dict.fromkeys(each.test for each in outcomes if each.suite == suite))
        for test in tests:
            table.add_row(suite, test, *(_word(by_place[suite, test, peer].passed) for peer in peers))
        passed = [sum(by_place[suite, test, peer].passed for test in tests) for peer in peers]
        table.add_row(suite, "in all", *(f"{each} of {len(tests)}" for each in passed), style="bold")
        table.add_section()
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of paho.mqtt.testing")
    parser.add_argument("--peer", choices=PEERS[1:], help="run the suites against this broker as well")
    parser.add_argument("--only", default="", metavar="TEXT", help="tests that have this in their name")
    parser.add_argument("--verbose", action="store_true", help="show what failed tests printed")
    options = parser.parse_args()
    suites = folder_of_suites(options.checkout.resolve())
    peers = [OURS, options.peer] if options.peer else [OURS]
    if options.peer and not installed(options.peer):
        sys.exit(f"{options.peer} is not installed; leave out --peer, or install it")
    with ThreadPoolExecutor(len(peers) * len(SUITES)) as pool:
        runs = [
            pool.submit(run_suite, peer, suite, suites, options.only) for peer in peers for suite in SUITES
        ]
        outcomes = [each for run in runs for each in run.result()]
    if not outcomes:
        sys.exit(f"no test has {options.only!r} in its name")
    show(outcomes, peers)
    failed = [each for each in outcomes if not each.passed]
    for each in failed if options.verbose else ():
        print(f"\n--- {each.peer}, {each.suite}, {each.test}\n{each.said}")
    sys.exit(any(each.peer == OURS for each in failed))


if __name__ == "__main__":
    main()
