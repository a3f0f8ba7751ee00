"""Does the package work in a session that Betimes did not open, and leave that session as it was?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.clusters import connect_server, environment
from tests.pipeline.match_tables import expected, random_events, random_wishes

PROGRAM = Path(__file__).with_name("programs.py")
ROOT = Path(__file__).parents[2]
WITHIN_S = 300.0


def told_by_program(folder: Path, address: str | None = None) -> dict[str, Any]:
    (folder / "tmp").mkdir()
    settings = {"TMPDIR": str(folder / "tmp"), "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), *([address] if address else [])],
        env=environment() | settings | {"PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.spark
@pytest.mark.parametrize("is_remote", [False, True], ids=["classic", "connect"])
def test_a_program_matches_in_its_own_session_and_nothing_is_left(tmp_path, is_remote):
    events, wishes = random_events(300), random_wishes(80)
    bad = pa.Table.from_pylist([{"subscriber": "wrong", "filter": "speed >> 1"}], schema=wishes.schema)
    for name, table in (("events", events), ("wishes", pa.concat_tables([wishes, bad]))):
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "part.parquet")
    if is_remote:
        with connect_server(tmp_path / "server") as address:
            told = told_by_program(tmp_path, address)
    else:
        told = told_by_program(tmp_path)
    wanted = {str(event): names for event, names in expected(events, wishes).items()}
    assert told["batch"] == wanted
    assert told["stream"] == wanted
    assert told["rejected"] == ["subscriber wrong"]
    assert told["alike"] == [[1, ["a"]]]
    assert told["left"] == {}
    assert told["temporary"] == []
