"""How many messages a second does a broker carry, side by side with Mosquitto on the same loopback?

256-byte messages; publishers and subscribers share one core, the broker has the other. With content filters
Mosquitto has none, so it must send everything to everybody: both numbers are given, what the broker sent and
what was wanted.

The load with a durable subscriber is also put on brokers that keep files. They promise different things:
Betimes commits before it acknowledges; Mosquitto 2 writes its file every half hour by default, and when it
ends.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from mqtt_load import Carried, Load, run
from rich.console import Console
from rich.table import Table

START_S_MAX = 20.0
FILTERED, WANTED_BY = 1000, 10
WITH_FILE = " with a file"
LOADS = (
    Load(name="QoS 0, one to one", messages=300_000),
    Load(name="QoS 1, one to one", messages=60_000, qos=1),
    Load(name="QoS 1, one to one, durable", messages=60_000, qos=1, durable=True),
    Load(name="fan-out, 1 to 100", messages=5_000, subscribers=100),
    Load(name="fan-in, 100 to 1", messages=200_000, publishers=100),
)


def filtered_load(with_filters: bool) -> Load:
    """Return 1,000 subscribers to one topic, each of whom wants one message in a hundred."""
    number = 500
    filters = tuple((("filter", f"speed BETWEEN {low} AND {low + 9}"),) for low in range(0, FILTERED, 10))
    wanted = FILTERED // len(filters)
    return Load(
        name="1,000 filters, one topic",
        messages=number,
        subscribers=FILTERED,
        subscribe_properties=filters if with_filters else ((),),
        publish_properties=(("speed", "5"),),
        copies=number * wanted if with_filters else number * FILTERED,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def started(
    command: list[str], port: int, stderr: IO[bytes] | int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a broker until the block ends."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        deadline_s = time.monotonic() + START_S_MAX
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                break
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"did not start: {' '.join(command)}")
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def brokers(folder: Path) -> dict[str, tuple[list[str], int]]:
    """Return the command and the port of each broker that is installed."""
    found = {}
    for name, options in (("Betimes", []), (f"Betimes{WITH_FILE}", ["--store", str(folder / "betimes.db")])):
        port = free_port()
        command = [str(Path(sys.executable).with_name("betimes")), "broker", "--anonymous"]
        found[name] = ([*command, "--port", str(port), *options], port)
    mosquitto = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    for name in ("Mosquitto", f"Mosquitto{WITH_FILE}") if mosquitto else ():
        port = free_port()
        config = folder / f"{name}.conf"
        lines = [
            "allow_anonymous true",
            f"listener {port} 127.0.0.1",
            "max_queued_messages 0",
            "max_inflight_messages 0",
        ]
        if name.endswith(WITH_FILE):
            lines += ["persistence true", f"persistence_location {folder}/", f"user {getpass.getuser()}"]
        config.write_text("\n".join(lines) + "\n")
        found[name] = ([str(mosquitto), "-c", str(config)], port)
    return found


def measure(repeats: int, share: float) -> dict[str, dict[str, Carried]]:
    """Return the best of several runs by load and broker; brokers take turns, so that noise meets both."""
    found: dict[str, dict[str, Carried]] = {}
    with tempfile.TemporaryDirectory() as folder:
        installed = brokers(Path(folder))
        with contextlib.ExitStack() as running:
            for command, port in installed.values():
                running.enter_context(started(command, port))
            for load in (*LOADS, None):
                for _ in range(repeats):
                    for name, (_, port) in installed.items():
                        if name.endswith(WITH_FILE) and not (load and load.durable):
                            continue
                        each = load or filtered_load(with_filters=name == "Betimes")
                        each = scaled(each, share)
                        carried = run(port, each)
                        best = found.setdefault(each.name, {}).get(name)
                        if best is None or carried.per_s > best.per_s:
                            found[each.name][name] = carried
    return found


def scaled(load: Load, share: float) -> Load:
    """Return the load with fewer messages."""
    messages = max(int(load.messages * share) // load.publishers, 1) * load.publishers
    copies = None if load.copies is None else load.copies * messages // load.messages
    return replace(load, messages=messages, copies=copies)


def show(found: dict[str, dict[str, Carried]]) -> None:
    table = Table(title="Messages a second, from publishers to all who want them (best run)")
    for column in ("load", "broker", "messages/s", "copies/s", "lost", "times Mosquitto's"):
        table.add_column(column, justify="left" if column in ("load", "broker") else "right")
    for name, by_broker in found.items():
        theirs = by_broker.get("Mosquitto")
        for broker, each in by_broker.items():
            ratio = f"{each.messages_per_s / theirs.messages_per_s:.2f}" if theirs else "-"
            table.add_row(
                name, broker, f"{each.messages_per_s:,.0f}", f"{each.per_s:,.0f}", f"{each.lost:,}", ratio
            )
    Console().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, once")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args(arguments)
    found = measure(repeats=1 if options.quick else 3, share=0.1 if options.quick else 1.0)
    if options.json:
        print(
            json.dumps(
                {
                    load: {
                        name: {
                            "messages_per_s": each.messages_per_s,
                            "received": each.received,
                            "lost": each.lost,
                        }
                        for name, each in by.items()
                    }
                    for load, by in found.items()
                }
            )
        )
    else:
        show(found)


if __name__ == "__main__":
    main()
