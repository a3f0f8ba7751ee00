"""How do golden texts come from commands, simulations and the pipeline? Only through this file, too.

Like `harness.py`, it is what has to follow when the inside changes. Numbers are kept to twelve significant
digits, and thirteen decimals: what lies behind them may be another processor's.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
DIGITS, DECIMALS = 12, 13
LONG_NUMBER = re.compile(r"-?\d+\.\d{9,}(?:e[+-]?\d+)?")  # also where one stands in a text


def rounded(value: Any) -> Any:
    """Return a value whose numbers have so many digits as all processors agree on."""
    match value:
        case bool() | None | int():
            return value
        case str():
            return LONG_NUMBER.sub(lambda found: f"{float(found[0]):.{DIGITS}g}", value)
        case float():
            return float(f"{round(value, DECIMALS):.{DIGITS}g}") if math.isfinite(value) else str(value)
        case dict():
            return {str(name): rounded(each) for name, each in value.items()}
        case list() | tuple():
            return [rounded(each) for each in value]
        case _:
            return rounded(value.item()) if hasattr(value, "item") else str(value)


def text_of(value: Any) -> str:
    """Return a value as JSON, a line for each thing in it."""
    return json.dumps(rounded(value), indent=1) + "\n"


def said(*arguments: str) -> str:
    """Return what a command prints, for somebody whose window has 140 columns; files are the repository's."""
    from betimes.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        with (
            mock.patch.dict(os.environ, {"COLUMNS": "140", "NO_COLOR": "1"}),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = run(list(arguments))
    finally:
        os.chdir(before)
    assert code == 0, err.getvalue()
    return "\n".join([line.rstrip() for line in out.getvalue().splitlines()]) + "\n"


def said_as_json(*arguments: str) -> str:
    """Return what a command prints with --json."""
    return text_of(json.loads(said(*arguments, "--json")))


def simulated(scenario: str, strategy: str, seed: int, **options: Any) -> Any:
    """Return the whole outcome of a run of a scenario, given as TOML."""
    from betimes.cli.simulate import outcome_facts
    from betimes.language.files.scenario_file import read_scenario
    from betimes.model.topology import LayeredWorld
    from betimes.scheduling.strategies import strategy_named
    from betimes.simulator.network import SimulatedNetwork
    from betimes.simulator.worlds import make_scenario

    world = read_scenario(scenario, "golden")
    made = make_scenario(world, seed) if isinstance(world, LayeredWorld) else world
    return outcome_facts(SimulatedNetwork(made, strategy_named(strategy), seed, **options).run())


def simulated_peers(seed: int, *, peers: int, cycles: int, churn: float) -> Any:
    """Return what became of an overlay of peers: who feeds whom, and what was sent."""
    from tests.oracles.peer_trials import Trial

    from betimes.peers.settings import our_settings

    trial = Trial(our_settings(6, 1.0, 4), seed, subscribers=peers)
    trial.run(cycles, churn=churn)
    found = [
        {
            "dz": [str(dz) for dz in peer.dz],
            "parents": sorted(str(name) for name in peer.lines.parents()),
            "children": sorted(str(name) for name in peer.children.by_name),
            "depth": peer.lines.depth,
            "received": peer.received,
            "unwanted": peer.unwanted,
        }
        for peer in trial.network.peers
    ]
    messages = trial.network.messages
    return {"messages": messages, "over_degree": trial.over_degree, "peers": found}


def simulated_mobility(seed: int, **settings: Any) -> Any:
    """Return what subscribers on the move lose."""
    from betimes.simulator.mobility import Mobility, simulate_mobility

    outcome = simulate_mobility(Mobility(**settings), seed)
    return {
        "wanted": outcome.wanted,
        "lost": outcome.lost,
        "twice": outcome.twice,
        "wanted_index": outcome.wanted_index,
        "lost_index": outcome.lost_index,
        "outages": outcome.outages,
        "unannounced": outcome.unannounced,
        "awaited": outcome.awaited,
        "carried": outcome.carried,
    }


def simulated_reservations(seed: int, wishes: Iterable[tuple[str, str, int | None]], crashed: str) -> Any:
    """Return what a hash table of nodes answers to who asks for bandwidth, and what links have promised."""
    import numpy as np

    from betimes.reservations.outcomes import Accepted, Refused
    from betimes.reservations.overlay.dht import DhtSettings
    from betimes.reservations.overlay_node import ReservationOverlaySettings
    from betimes.reservations.requests import ReservationRequest
    from betimes.simulator.reservation_overlay import ReservationOverlay

    places = np.random.default_rng(seed).uniform(0.0, 0.05, (12, 2))
    latencies_s = np.linalg.norm(places[:, None] - places[None], axis=2) + 0.001
    np.fill_diagonal(latencies_s, 0.0)
    dht = DhtSettings(beat_every_s=1.0, lost_after_s=3.0, forgotten_for_s=10.0)
    settings = ReservationOverlaySettings(dht=dht, refresh_every_s=2.0, lapse_after_s=6.0, answer_s_max=2.0)
    overlay = ReservationOverlay(latencies_s, seed, settings=settings, link_bytes_per_s=80)
    overlay.grow(8)

    def state() -> dict[str, Any]:
        kinds = {Accepted: "accepted", Refused: "refused"}
        told = [[kinds.get(type(each), "interrupted"), *each] for each in overlay.news]
        overlay.news.clear()
        promised = {
            f"{name}->{neighbour}": node.outward.promised(neighbour)
            for name, node in sorted(overlay.nodes.items())
            for neighbour in sorted(node.outward.neighbours)
        }
        return {"told": told, "promised": {link: share for link, share in promised.items() if share}}

    for number in range(3):
        overlay.advertise(f"n{number}", f"type {number}", 20, replicas=2)
    overlay.settle()
    for number, (name, event_type, bytes_per_s) in enumerate(wishes):
        wish = ReservationRequest(
            subscription=f"s{number}", event_type=event_type, bytes_per_s=bytes_per_s, replicas=2
        )
        overlay.subscribe(name, wish)
        overlay.settle()
    found = [state()]
    overlay.crash(crashed)
    overlay.run_until(overlay.agenda.now_s + 20.0)
    return [*found, state(), {"messages": overlay.sent.total()}]


# --- the pipeline


def telemetry_rows(folder: Path, kind: str, rows: list[dict[str, Any]], part: str = "more") -> None:
    """Add a part to telemetry: rows like the first one there, or like nothing, but for what is given."""
    there = pq.read_table(min((folder / kind).glob("*.parquet")))
    usual = {
        field.name: {"double": 0.5, "int64": 1, "bool": True}.get(str(field.type), "x")
        for field in there.schema
    }
    base = there.slice(0, 1).to_pylist()[0] if there.num_rows else usual
    made = pa.Table.from_pylist([base | row for row in rows], schema=there.schema)
    pq.write_table(made, folder / kind / f"part-{part}-00000.parquet")


def telemetry_again(folder: Path, kind: str, rows: int) -> None:
    """Add a part to telemetry with rows that are there already."""
    first = min((folder / kind).glob("*.parquet"))
    pq.write_table(pq.read_table(first).slice(0, rows), first.with_name("part-copy-00000.parquet"))


def open_spark() -> SparkSession:
    """Open a session like that of the tests."""
    from betimes.pipeline.spark.session import open_session

    return open_session("betimes golden", master="local[2]")


def tables_text(spark: SparkSession, telemetry: Path, tables: Path) -> str:
    """Run the pipeline; return all its tables as sorted CSV, and its own summary."""
    from betimes.pipeline.tables.files import current_tables, read_arrow
    from betimes.pipeline.tables.shapes import TABLES
    from betimes.pipeline.telemetry.job import run_pipeline
    from betimes.pipeline.telemetry.run_facts import facts_for_json

    facts = facts_for_json(run_pipeline(spark, telemetry, tables))
    summary = {name: value for name, value in facts.items() if name not in ("telemetry", "took_s")}
    parts = [f"== run\n{text_of(summary)}"]
    for shape in TABLES.values():
        if shape.is_filled:
            parts.append(f"== {shape.name}\n{_csv(read_arrow(shape, current_tables(tables)))}")
    return "\n".join(parts).replace(str(telemetry), "TELEMETRY")


def _csv(table: pa.Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in sorted([_cells(each) for each in table.to_pylist()]):
        writer.writerow(row)
    return out.getvalue()


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        json.dumps(rounded(each)) if isinstance(each, list | dict) else str(rounded(each))
        for each in row.values()
    ]
