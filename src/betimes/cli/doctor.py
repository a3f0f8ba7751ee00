"""`betimes doctor`: print the Java, Spark and Python of this machine, and optionally test them."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import version
from typing import Annotated

import typer

from betimes import __version__
from betimes.terminal.spark_options import MasterOption, RemoteOption, open_spark
from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json

EXAMPLES = examples(
    "betimes doctor",
    "betimes doctor --start --master spark://HOST:7077",
)


def doctor_command(
    start: Annotated[
        bool, typer.Option("--start", help="Start Spark, run a small job, and print the times.")
    ] = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print which Java, Spark and Python Betimes uses, and test them with --start.

    Run it first when a command with Spark fails.
    """
    facts = machine_facts()
    if start or master or remote:
        facts |= start_facts(master, remote)
    if as_json:
        print_json(facts)
    else:
        print_facts("ready", facts)


def machine_facts() -> dict[str, object]:
    """Return versions and paths; raise a NoJavaError if there is no Java for Spark."""
    from betimes.pipeline.spark.java import find_java

    java = find_java()
    return {
        "betimes": __version__,
        "python": platform.python_version(),
        "java": java.version,
        "java_from": java.origin,
        "java_home": str(java.home),
        "spark": version("pyspark"),
        "cores": os.cpu_count(),
    }


def start_facts(master: str | None, remote: str | None) -> dict[str, object]:
    """Start Spark, run a first and a second Python task, and return the times."""
    from betimes.pipeline.spark.session import start_s
    from betimes.pipeline.sweeps.sweep import run_sweep

    spark = open_spark("betimes doctor", master, remote)
    took_s = []
    for _ in range(2):
        began_s = time.monotonic()
        run_sweep(spark, [{"row": 1}], dict)
        took_s.append(round(time.monotonic() - began_s, 2))
    return {"start_s": round(start_s(spark), 2), "first_task_s": took_s[0], "next_task_s": took_s[1]}
