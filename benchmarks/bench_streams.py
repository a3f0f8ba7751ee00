"""Does a Spark stream keep up with a broker, and does it lose or double anything when its driver is killed?

A broker, a publisher and a Spark query (`stream_driver.py`: from the broker to Parquet files) share this
machine. Events of 100 bytes with two attributes are published at a steady rate; half of them pass the
query's filter.

`.venv/bin/python benchmarks/bench_streams.py --rate 20000 --seconds 30`
`.venv/bin/python benchmarks/bench_streams.py --restarts 20 --rate 2000`: as long as events come, the driver
(Python, Java and all) is killed with `kill -9` at a random moment of each life, and started again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import mqtt5
import pyarrow.parquet as pq
from mqtt_brokers import betimes, free_port, started

from betimes.client.addresses import Address
from betimes.client.blocking.connection import DirectConnection

PAYLOAD = bytes(100)
STEP_S = 0.02
FILTER = "speed >= 50"
QUIET_S_MAX = 60.0  # for the last events to come out


class Publisher(threading.Thread):
    """Publishes numbered events at a rate, until it is told to end."""

    def __init__(self, port: int, rate_per_s: float) -> None:
        super().__init__(daemon=True)
        self.published = 0
        self._line = DirectConnection(Address(host="127.0.0.1", port=port))
        self._rate_per_s = rate_per_s
        self.ending = threading.Event()

    def run(self) -> None:
        began_s = time.monotonic()
        while not self.ending.wait(STEP_S):
            due = int((time.monotonic() - began_s) * self._rate_per_s)
            self._line.send(*(self._event(number) for number in range(self.published, due)))
            self.published = due
        self._line.send(mqtt5.PingReqPacket())
        self._line.receive()

    @staticmethod
    def _event(number: int) -> mqtt5.PublishPacket:
        properties = [("number", str(number)), ("speed", str(number % 100))]
        return mqtt5.PublishPacket(f"bench/{number % 7}", PAYLOAD, user_properties=properties)

    def wanted(self) -> int:
        """Return how many of them pass the filter."""
        return sum(number % 100 >= 50 for number in range(self.published))


def launch(port: int, directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("stream_driver.py")), str(port), str(directory)]
    return subprocess.Popen([*command, FILTER], stdout=subprocess.PIPE, text=True, start_new_session=True)


def kill(driver: subprocess.Popen[str]) -> None:
    """End a driver and its Java, without a word."""
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def read_rows(directory: Path) -> list[int]:
    """Return the numbers that Spark's file sink has committed."""
    log = directory / "rows" / "_spark_metadata"
    files = []
    for entry in log.iterdir() if log.exists() else ():
        if not entry.name.startswith("."):
            lines = [json.loads(line) for line in entry.read_text().splitlines()[1:]]
            files += [line["path"].removeprefix("file://") for line in lines]
    return [number for file in dict.fromkeys(files) for number in pq.read_table(file)["number"].to_pylist()]


def gaps_told(directory: Path) -> int:
    return len(list((directory / "gaps").glob("*.parquet")))


def until_all_came(directory: Path, wanted: int) -> list[int]:
    end_s = time.monotonic() + QUIET_S_MAX
    while len(found := read_rows(directory)) < wanted and time.monotonic() < end_s:
        time.sleep(0.5)
    return found


def measure_rate(port: int, directory: Path, rate_per_s: float, seconds: float) -> bool:
    """Publish at a rate for some time, and tell how far behind the stream is."""
    driver = launch(port, directory)
    assert driver.stdout is not None
    publisher = Publisher(port, rate_per_s)
    facts: list[tuple[float, dict[str, Any]]] = []

    def read_on() -> None:
        for line in driver.stdout or ():
            facts.append((time.monotonic(), json.loads(line)))

    follow = threading.Thread(target=read_on)
    follow.start()
    publisher.start()
    while not facts:  # Spark takes its time to start; what came meanwhile is caught up with
        time.sleep(0.1)
    began_s = time.monotonic()
    time.sleep(seconds)
    publisher.ending.set()
    publisher.join()
    ended_s = time.monotonic()
    wanted = publisher.wanted()
    found = until_all_came(directory, wanted)
    caught_up_s = time.monotonic() - ended_s
    kill(driver)
    follow.join()
    measured = [fact for at_s, fact in facts if began_s + seconds / 2 <= at_s <= ended_s]
    rows = sum(fact["rows"] for fact in measured)
    busy_s = sum(fact["took_s"] for fact in measured)
    print(f"published {publisher.published:,} at {rate_per_s:,.0f}/s; {wanted:,} pass the filter")
    twice = len(found) - len(set(found))
    print(f"came {len(found):,}, of them {twice:,} twice; the last {caught_up_s:.1f} s late")
    print(f"second half: {len(measured)} batches of {rows / max(len(measured), 1):,.0f} rows, ", end="")
    print(
        f"{busy_s / max(len(measured), 1):.2f} s each; {2 * rows / max(busy_s, 1e-9):,.0f} events/s in them"
    )
    print(f"gaps told: {gaps_told(directory)}; steps of the last batch: {facts[-1][1]['steps']}")
    return len(found) == len(set(found)) == wanted


def measure_restarts(port: int, directory: Path, rate_per_s: float, restarts: int) -> bool:
    """Kill the driver again and again while events come."""
    publisher = Publisher(port, rate_per_s)
    publisher.start()
    chance = random.Random(restarts)
    for life in range(restarts):
        driver = launch(port, directory)
        assert driver.stdout is not None
        first = driver.stdout.readline()  # it has written something
        time.sleep(chance.uniform(0.0, 3.0))
        kill(driver)
        print(f"life {life + 1}: killed after batch {json.loads(first)['batch']}", flush=True)
    publisher.ending.set()
    publisher.join()
    driver = launch(port, directory)
    wanted = publisher.wanted()
    found = until_all_came(directory, wanted)
    time.sleep(3.0)  # whatever comes twice comes now
    found = read_rows(directory)
    kill(driver)
    lost, twice = wanted - len(set(found)), len(found) - len(set(found))
    print(f"{restarts} kills: published {publisher.published:,}, wanted {wanted:,}; ", end="")
    print(f"lost {lost}, twice {twice}, gaps told {gaps_told(directory)}")
    return not lost and not twice


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=20_000.0, help="events a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="once the first batch is through")
    parser.add_argument(
        "--restarts", type=int, default=0, help="kill the driver so often, and measure nothing"
    )
    asked = parser.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="betimes-streams-") as folder:
        place = Path(folder)
        config = place / "broker.toml"
        config.write_text(f'port = {port}\nanonymous = true\n[buffer]\nsize = "1GB"\nmessages = 10000000\n')
        with started(betimes(str(config)), port):
            if asked.restarts:
                is_well = measure_restarts(port, place / "query", asked.rate, asked.restarts)
            else:
                is_well = measure_rate(port, place / "query", asked.rate, asked.seconds)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
