"""How many messages a second does a broker carry, and how late, beside its peers on the same loopback?

256-byte messages; publishers and subscribers share one core, the broker has the other. With content filters
the peers have none, so they must send everything to everybody: both numbers are given, what the broker sent
and what was wanted.

Peers are measured where they are installed: Mosquitto; NATS (nats-server), which keeps everything above
QoS 0 in files; amqtt, another broker in Python, which is slow and so gets fewer messages. It wants an older
`websockets` than ours, so it is not in the `bench` extra: put an environment that has it on the path. NATS
and amqtt speak MQTT 3.1.1 only, and so Betimes has a row with that too.

The load with a durable subscriber is also put on brokers that keep files. They promise different things:
Betimes commits before it acknowledges; Mosquitto 2 writes its file every half hour by default, and when it
ends.

Processor time is that of the broker's process, in microseconds for each message that was published: it is
steadier than messages a second on a machine that does other things too. `--beside PROGRAM` puts another
`betimes` under the same load in the same run, such as that of an older commit.

How late messages are is measured at half of the rate that was found: of the broker's own, and of the slower
one's, so that there is one rate at which both were measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mqtt_brokers import amqtt, cpu_s, free_port, installed, mosquitto, nats, open_betimes, started
from mqtt_latency import Latency, latency
from mqtt_load import Carried, Load, run
from rich.console import Console
from rich.table import Table

FILTERED = 1000
OURS, OLD, BESIDE, THEIRS = "Betimes", "Betimes, 3.1.1", "Betimes beside it", "Mosquitto"
WITH_FILE = " with a file"
SLOW_SHARE = 0.02  # of the messages, for a broker that would take minutes for all of them
LATENCY_S = 3.0
LOADS = (
    Load(name="QoS 0, one to one", messages=300_000),
    Load(name="QoS 1, one to one", messages=60_000, qos=1),
    Load(name="QoS 1, one to one, durable", messages=60_000, qos=1, durable=True),
    Load(name="fan-out, 1 to 100", messages=5_000, subscribers=100),
    Load(name="fan-in, 100 to 1", messages=200_000, publishers=100),
)
TABLE_WIDTH = 130  # where no terminal says how wide it is
STEADY = LOADS[:2]  # what latency is measured with


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker under load; one process may be under load in both versions of MQTT."""

    name: str
    port: int
    command: list[str] | None  # None: it runs already
    version: int = 5
    share: float = 1.0  # of the messages of a load

    def given(self, load: Load) -> Load | None:
        """Return the load as this broker gets it; None if it cannot have it, or nothing is learned by it."""
        if load.durable and self.version == 4:
            return None
        if load.publish_properties and self.name == OLD:  # it would do as Mosquitto does
            return None
        if self.name.endswith(WITH_FILE) and not load.durable:
            return None
        if load.publish_properties:
            load = filtered_load(with_filters=self.name in (OURS, BESIDE))
        return replace(scaled(load, self.share), version=self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one broker made of a load once."""

    carried: Carried
    cpu_s: float | None  # None where the system does not say

    @property
    def cpu_us_per_message(self) -> float | None:
        """Return the processor time of the broker for each message that was published."""
        return None if self.cpu_s is None else self.cpu_s / self.carried.messages * 1e6


Found = dict[str, dict[str, list[Round]]]  # by load and broker, one of each round
Late = dict[str, dict[str, list[Latency]]]


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


def brokers(folder: Path, beside: Path | None) -> list[Broker]:
    """Return each broker that is installed."""
    ports = iter([free_port() for _ in range(7)])
    port = next(ports)
    found = [
        Broker(name=OURS, port=port, command=open_betimes(folder / "betimes.toml", port)),
        Broker(name=OLD, port=port, command=None, version=4),
    ]
    port = next(ports)
    kept = open_betimes(folder / "keeping.toml", port, "--store", str(folder / "betimes.db"))
    found.append(Broker(name=f"{OURS}{WITH_FILE}", port=port, command=kept))
    if beside is not None:
        port = next(ports)
        command = [str(beside), *open_betimes(folder / "beside.toml", port)[1:]]
        found.append(Broker(name=BESIDE, port=port, command=command))
    if installed("mosquitto"):
        unbound = ("max_queued_messages 0", "max_inflight_messages 0")
        port = next(ports)
        command = mosquitto(folder / "mosquitto.conf", port, *unbound)
        found.append(Broker(name=THEIRS, port=port, command=command))
        port = next(ports)
        keeping = ("persistence true", f"persistence_location {folder}/")
        command = mosquitto(folder / "keeping.conf", port, *unbound, *keeping)
        found.append(Broker(name=f"{THEIRS}{WITH_FILE}", port=port, command=command))
    if installed("nats-server"):
        port = next(ports)
        found.append(
            Broker(name="NATS, 3.1.1", port=port, command=nats(folder / "nats.conf", port), version=4)
        )
    if installed("amqtt"):
        port = next(ports)
        command = amqtt(folder / "amqtt.yaml", port)
        found.append(Broker(name="amqtt, 3.1.1", port=port, command=command, version=4, share=SLOW_SHARE))
    return found


def measure(rounds: int, share: float, only: str, beside: Path | None) -> tuple[Found, Late]:
    """Return what every round brought; brokers take turns, so that noise meets all of them."""
    loads = [each for each in (*LOADS, filtered_load(with_filters=True)) if only in each.name]
    if not loads:
        sys.exit(f"no load has {only!r} in its name")
    found: Found = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        present = brokers(Path(folder), beside)
        processes: dict[int, int] = {}
        for broker in present:
            if broker.command is not None:
                processes[broker.port] = running.enter_context(started(broker.command, broker.port)).pid
        for load in loads:
            for _ in range(rounds):
                for broker in present:
                    given = broker.given(load)
                    if given is not None:
                        once = one_round(broker.port, scaled(given, share), processes[broker.port])
                        found.setdefault(load.name, {}).setdefault(broker.name, []).append(once)
        compared = [each for each in present if each.name in (OURS, THEIRS)]
        return found, measure_latency(compared, found, rounds, LATENCY_S * share)


def one_round(port: int, load: Load, process: int) -> Round:
    """Put a load on a broker, and look at the processor time of its process before and after."""
    before_s = cpu_s(process)
    carried = run(port, load)
    after_s = cpu_s(process)
    return Round(carried=carried, cpu_s=None if before_s is None or after_s is None else after_s - before_s)


def measure_latency(present: list[Broker], found: Found, rounds: int, seconds: float) -> Late:
    """Return how late messages are at half of each broker's best rate, and of the slower one's."""
    late: Late = {}
    for load in (each for each in STEADY if each.name in found):
        rates = {each.name: best(found[load.name][each.name]).carried.messages_per_s / 2 for each in present}
        for _ in range(rounds):
            for broker in present:
                for rate in sorted({rates[broker.name], min(rates.values())}):
                    measured = latency(broker.port, load, rate, seconds)
                    late.setdefault(load.name, {}).setdefault(broker.name, []).append(measured)
    return late


def scaled(load: Load, share: float) -> Load:
    """Return the load with fewer messages."""
    messages = max(int(load.messages * share) // load.publishers, 1) * load.publishers
    copies = None if load.copies is None else load.copies * messages // load.messages
    return replace(load, messages=messages, copies=copies)


def best(runs: list[Round]) -> Round:
    return max(runs, key=lambda each: each.carried.messages_per_s)


def least_cpu(runs: list[Round]) -> str:
    known = [each.cpu_us_per_message for each in runs if each.cpu_us_per_message is not None]
    return f"{min(known):.2f}" if known else "-"


def ratios(ours: list[Round], theirs: list[Round]) -> str:
    """Return how many times theirs ours is: the best of all rounds, and from the worst round to the best."""
    by_round = [
        a.carried.messages_per_s / b.carried.messages_per_s for a, b in zip(ours, theirs, strict=True)
    ]
    at_best = best(ours).carried.messages_per_s / best(theirs).carried.messages_per_s
    return f"{at_best:.2f} ({min(by_round):.2f} to {max(by_round):.2f})"


def console() -> Console:
    return Console(width=None if sys.stdout.isatty() else TABLE_WIDTH)


def show(found: Found, late: Late) -> None:
    table = Table(title="Messages a second, from publishers to all who want them")
    titles = (
        "load",
        "broker",
        "sent",
        "best/s",
        "worst/s",
        "copies/s",
        "CPU us/msg",
        "missing",
        "times Mosquitto's (rounds)",
    )
    for column in titles:
        table.add_column(column, justify="left" if column in titles[:2] else "right")
    for name, by_broker in found.items():
        for broker, runs in by_broker.items():
            most = best(runs).carried
            table.add_row(
                name,
                broker,
                f"{most.messages:,}",
                f"{most.messages_per_s:,.0f}",
                f"{min(each.carried.messages_per_s for each in runs):,.0f}",
                f"{most.per_s:,.0f}",
                least_cpu(runs),
                f"{sum(each.carried.lost for each in runs):,}",
                ratios(runs, by_broker[THEIRS]) if THEIRS in by_broker else "-",
            )
        table.add_section()
    console().print(table)
    show_latency(late)


def show_latency(late: Late) -> None:
    table = Table(title="How long under way, in milliseconds: the best round, and the worst")
    titles = ("load", "broker", "messages/s", "median", "99th percentile", "missing")
    for column in titles:
        table.add_column(column, justify="left" if column in titles[:2] else "right")
    for name, by_broker in late.items():
        for broker, measured in by_broker.items():
            for rate in sorted({each.rate_per_s for each in measured}):
                rounds = [each for each in measured if each.rate_per_s == rate]
                medians = sorted(each.median_s * 1000.0 for each in rounds)
                p99s = sorted(each.p99_s * 1000.0 for each in rounds)
                table.add_row(
                    name,
                    broker,
                    f"{rate:,.0f}",
                    f"{medians[0]:.2f} .. {medians[-1]:.2f}",
                    f"{p99s[0]:.2f} .. {p99s[-1]:.2f}",
                    f"{sum(each.missing for each in rounds):,}",
                )
        table.add_section()
    console().print(table)


def as_json(found: Found, late: Late) -> str:
    """Return every round of every load."""
    loads = {
        load: {
            name: [
                {
                    "messages_per_s": each.carried.messages_per_s,
                    "received": each.carried.received,
                    "lost": each.carried.lost,
                    "cpu_us_per_message": each.cpu_us_per_message,
                }
                for each in runs
            ]
            for name, runs in by_broker.items()
        }
        for load, by_broker in found.items()
    }
    latencies = {
        load: {name: [asdict(each) for each in measured] for name, measured in by_broker.items()}
        for load, by_broker in late.items()
    }
    return json.dumps({"loads": loads, "latencies": latencies})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, once")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--rounds", type=int, default=3, choices=range(1, 101), metavar="1..100")
    parser.add_argument("--only", default="", metavar="TEXT", help="loads that have this in their name")
    parser.add_argument(
        "--beside", type=Path, metavar="PROGRAM", help="another betimes, under the same loads"
    )
    options = parser.parse_args(arguments)
    rounds, share = (1, 0.1) if options.quick else (options.rounds, 1.0)
    found, late = measure(rounds, share, options.only, options.beside)
    if options.json:
        print(as_json(found, late))
    else:
        show(found, late)


if __name__ == "__main__":
    main()
