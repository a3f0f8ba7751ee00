"""Does every command that uses Spark do its work at a Spark Connect server, though it stands elsewhere?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.pipeline.clusters import connect_server
from tests.pipeline.match_tables import expected, random_events, random_wishes
from tests.pipeline.telemetry.test_job import CITY

from betimes.cli.app import run
from betimes.cli.simulate import simulate, with_duration
from betimes.experiments.catalogue import FIGURES
from betimes.experiments.figure import FigurePlan
from betimes.language.files.scenario_file import read_scenario
from betimes.pipeline.tables.files import current_tables, read_arrow
from betimes.pipeline.tables.shapes import MATCHES
from betimes.terminal.exit_codes import MISTAKE
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

WITHIN_S = 600.0
FIGURE = "farooq-7"
# One process for all: a command takes longer to start than to do so little.
DRIVER = """
import json, sys
from betimes.cli.app import run
from betimes.pipeline.spark import session

def where(batches):
    import betimes
    import pyarrow as pa
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": [betimes.__file__]})

remote = sys.argv[1]
spark = session.open_session("test", remote=remote)
(row,) = spark.range(1).mapInArrow(where, "file string").collect()
assert ".zip" in row.file, row.file
assert session.cores(spark) == 2
# The server's workers have Betimes already, with its kernels compiled.
session.ship_package = lambda spark: None
for command in json.loads(sys.argv[2]):
    code = run([*command, "--remote", remote])
    assert code == 0, (command, code)
"""
WISHES = "subscriber,home,filter,delay_s_max\nanna,airport,TRUE,5\nbert,airport,speed > 50,1\n"


@pytest.mark.spark
def test_every_command_works_at_a_server_with_paths_from_here(tmp_path):
    city = with_duration(read_scenario(CITY.read_text(), "city"), 100.0)
    outcome = simulate(city, "fifo", 3, tmp_path / "telemetry")
    events, wishes = random_events(400), random_wishes(300)
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=100)
    pq.write_table(wishes, tmp_path / "wishes.parquet")
    (tmp_path / "wishes.csv").write_text(WISHES)
    match = ["match", "--events", "events.parquet", "--subscriptions", "wishes.parquet"]
    commands = [
        ["doctor"],
        [*match, "--out", "whole"],
        [*match, "--out", "divided", "--index-mb", "0.02"],
        ["pipeline", "run", "--telemetry", "telemetry", "--tables", "tables"],
        ["replay", "--tables", "tables", "--subscriptions", "wishes.csv", "--out", "replay"],
        ["figure", FIGURE, "--quick", "--seeds", "1", "--out", "figures"],
    ]
    (tmp_path / "secret").write_text("a secret of the control centre")
    broker = FleetPlan(
        ports={"airport": free_ports(1)[0]},
        links=(),
        settings={"anonymous": True, "control_secret_file": str(tmp_path / "secret")},
    )
    learn = ["--telemetry", "telemetry", "--tables", "learned", "--control-secret", "secret", "--once"]
    commands.append(["control", f"mqtt://{HOST}:{broker.ports['airport']}", *learn])
    with connect_server(tmp_path / "server") as address, Fleet(broker):
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, address, json.dumps(commands)],
            cwd=tmp_path,
            env=dict(os.environ) | {"COLUMNS": "120"},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    wanted = expected(events, wishes)
    for name in ("whole", "divided"):
        rows = pq.read_table(tmp_path / name / "matches").to_pylist()
        assert {row["event"]: sorted(row["subscribers"]) for row in rows} == wanted
    found = read_arrow(MATCHES, current_tables(tmp_path / "tables"))
    assert found.num_rows == outcome.wanted > 0
    assert set(pq.read_table(tmp_path / "replay" / "matches")["subscriber"].to_pylist()) == {"anna", "bert"}
    assert read_arrow(MATCHES, current_tables(tmp_path / "learned")).num_rows == outcome.wanted
    figure = FIGURES[FIGURE]
    runs = pq.read_table(tmp_path / "figures" / FIGURE / "results.parquet").to_pylist()
    for row, run_there in zip(figure.rows(FigurePlan(seeds=(1,), quick=True)), runs, strict=True):
        assert dict(figure.run(row)).items() <= run_there.items()


def test_a_stream_of_control_is_refused_where_its_driver_would_be_elsewhere(tmp_path: Path, capsys):
    places = ["--telemetry", str(tmp_path), "--tables", str(tmp_path), "--control-secret", str(tmp_path)]
    assert run(["control", "mqtt://a", *places, "--stream", "--remote", "sc://127.0.0.1"]) == MISTAKE
    assert "cannot be combined with --stream" in capsys.readouterr().err
