"""Which runs are golden? Simulations of several worlds, answers of commands, and tables of one telemetry."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden import runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = runs.ROOT / "examples"
TABLES = "pipeline-tables"
BUSY = "tests/golden/busy.toml"
STRATEGIES = ("fifo", "rl", "eb", "pc", "ebpc:0.5", "look-ahead", "late-binding")

# The paper's network, smaller; publishers state the bound (PSD).
PSD = """
duration = "4m"
[generate]
layers = [2, 2, 4]
subscribers_per_broker = 4
rate = "24/min"
size = "50KB"
deadline = { uniform = ["5s", "20s"] }
"""
# Subscribers state bounds and prices (SSD).
SSD = """
duration = "4m"
[generate]
layers = [2, 2, 4]
subscribers_per_broker = 4
rate = "24/min"
tiers = [{ max_delay = "6s", price = 3 }, { max_delay = "15s", price = 2 }, { max_delay = "40s", price = 1 }]
"""
# A ring with a publisher that has a slow line of its own; things fail, some for good.
FAILING = """
duration = "3m"
processing = "5ms"
brokers = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
links = [
  { from = "a", to = "b", mean = "40ms/KB", deviation = "15ms/KB", both_ways = true },
  { from = "b", to = "c", mean = "50ms/KB", deviation = "10ms/KB", both_ways = true },
  { from = "a", to = "d", mean = "80ms/KB", deviation = "30ms/KB", both_ways = true },
  { from = "d", to = "c", rate = "20KB/s", delay = "20ms", both_ways = true },
]
subscribers = [
  { name = "s1", broker = "c", filter = "x < 5", max_delay = "3s", price = 4 },
  { name = "s2", broker = "b", filter = "x >= 3", max_delay = "6s" },
  { name = "s3", broker = "d", max_delay = "2s", price = 2 },
  { name = "s4", broker = "a", filter = "x BETWEEN 2 AND 8" },
]
faults = [
  { link = "a->b", at = "20s", for = "30s" },
  { broker = "d", at = "60s", for = "20s" },
  { broker = "b", at = "140s" },
]
[[publishers]]
name = "p"
broker = "a"
rate = "2/s"
size = { exponential = "6KB" }
attributes.x = { uniform = [0, 10] }
[[publishers]]
name = "q"
broker = "c"
rate = "1/s"
gaps = "constant"
size = "8KB"
deadline = "4s"
attributes.x = { normal = [5, 2] }
access = { mean = "20ms/KB", deviation = "5ms/KB" }
"""


def _example(name: str) -> str:
    return (EXAMPLES / f"{name}.toml").read_text()


def _failing() -> Any:
    return {strategy: runs.simulated(FAILING, strategy, 2) for strategy in STRATEGIES}


def _reservations() -> Any:
    wishes = [("n5", "type 0", 20), ("n6", "type 0", None), ("n7", "type 1", 70), ("n8", "type 2", 90)]
    wishes += [(f"n{number}", "type 1", 30) for number in (9, 10, 11)] + [("n4", "type 9", 5)]
    return runs.simulated_reservations(4, wishes, "n5")


def _mobility() -> Any:
    usual: dict[str, Any] = {"duration_s": 2000.0, "messages_max": 24, "rate_per_s": 4.0, "brokers": 2}
    policies = ("lrp", "random", "pwp", "value-decay", "disconnection-aware")
    return {name: runs.simulated_mobility(3, overwrite=name, **usual) for name in policies}


def _commands(*commands: tuple[str, ...]) -> str:
    """Return what commands print, for people and as JSON."""
    parts = []
    for command in commands:
        parts.append(f"== betimes {' '.join(command)}\n{runs.said(*command)}")
        parts.append(f"== betimes {' '.join(command)} --json\n{runs.said_as_json(*command)}")
    return "\n".join(parts)


OUTCOMES: dict[str, Callable[[], str]] = {
    "simulation-paper-psd": lambda: runs.text_of(runs.simulated(PSD, "eb", 1)),
    "simulation-paper-ssd": lambda: runs.text_of(runs.simulated(SSD, "ebpc:0.5", 2)),
    "simulation-learning": lambda: runs.text_of(runs.simulated(PSD, "late-binding", 3, learn_every_s=15.0)),
    "simulation-failures": lambda: runs.text_of(_failing()),
    "simulation-guarantees": lambda: runs.text_of(runs.simulated(_example("guarantees"), "late-binding", 1)),
    "simulation-reservations": lambda: runs.text_of(_reservations()),
    "simulation-peers": lambda: runs.text_of(runs.simulated_peers(5, peers=20, cycles=12, churn=0.05)),
    "simulation-mobility": lambda: runs.text_of(_mobility()),
    "command-simulate": lambda: _commands(
        ("simulate", "examples/city.toml", "--strategy", "eb", "--seed", "3"),
        ("simulate", "examples/guarantees.toml", "--duration", "20"),
    ),
    "command-predict": lambda: _commands(
        ("predict", "examples/city.toml"),
        ("predict", "examples/flights.toml", "--model", "gg1"),
        ("predict", BUSY, "--keep-expired"),
    ),
    "command-admit": lambda: _commands(
        ("admit", "examples/city.toml"),
        ("admit", BUSY),
        ("admit", BUSY, "--policy", "none"),
        ("admit", BUSY, "--policy", "low-req-first", "--margin", "0.02", "--model", "mm1"),
    ),
}


def pipeline_tables(spark: SparkSession, folder: Path) -> str:
    """Return the tables of simulated seconds, with rows that are bad, late, doubled or of an odd kind."""
    telemetry = folder / "telemetry"
    scenario = ("simulate", BUSY, "--strategy", "fifo", "--seed", "3", "--duration", "6")
    runs.said(*scenario, "--telemetry", str(telemetry))
    runs.telemetry_rows(telemetry, "received", [{"neighbour": "nowhere", "number": 7_000}])
    runs.telemetry_rows(telemetry, "published", [{"time_s": -1.0, "number": 7_001}, {"content": "{"}])
    runs.telemetry_rows(telemetry, "dropped", _drops())
    runs.telemetry_rows(telemetry, "unsubscribed", [_wish("v", "b") | {"time_s": 5.0}])
    answer = _wish("s", "c") | {"reliability": 0.99, "admitted": False, "reason": "too much"}
    runs.telemetry_rows(telemetry, "answered", [answer, answer | {"time_s": 5.0, "admitted": True}])
    runs.telemetry_again(telemetry, "delivered", 3)
    return runs.tables_text(spark, telemetry, folder / "tables")


def _wish(subscriber: str, broker: str) -> dict[str, Any]:
    return {"time_s": 4.0, "broker": broker, "share": 1.0, "subscriber": subscriber, "pattern": "#"}


def _drops() -> list[dict[str, Any]]:
    """Return what a broker gave up, for reasons that the simulated seconds may not have."""
    lost = {"broker": "b", "share": 1.0, "origin": "a", "publisher": "p"}
    told = {"destination": "c", "age_s": 3.5, "subscribers": 1}
    return [
        lost | told | {"number": number, "time_s": 1.0 + number, "reason": reason}
        for number, reason in enumerate(("hopeless", "expired", "queue_full"), start=1)
    ]


def record_tables() -> str:
    """Return the tables, from a session of their own."""
    spark = runs.open_spark()
    try:
        with tempfile.TemporaryDirectory() as folder:
            return pipeline_tables(spark, Path(folder))
    finally:
        spark.stop()
