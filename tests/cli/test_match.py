"""Does `betimes match` match tables, explain itself, and refuse what cannot be?"""

from __future__ import annotations

import json

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.cli.app import run
from betimes.cli.match import show_plan
from betimes.pipeline.match.plan import MatchPlan


@pytest.mark.spark
def test_tables_are_matched_and_summed_up(spark, tmp_path, capsys):
    events, wishes = random_events(200), random_wishes(60)
    pq.write_table(events, tmp_path / "events.parquet")
    pa_csv.write_csv(wishes, tmp_path / "wishes.csv")
    arguments = [
        "match",
        "--events",
        f"{tmp_path}/events.parquet",
        "--subscriptions",
        f"{tmp_path}/wishes.csv",
    ]
    assert run([*arguments, "--out", f"{tmp_path}/out", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    wanted = expected(events, wishes)
    assert (facts["wanted_events"], facts["pairs"]) == (len(wanted), sum(map(len, wanted.values())))
    assert run([*arguments, "--out", f"{tmp_path}/out"]) == 2
    assert "already holds" in capsys.readouterr().err
    assert run([*arguments, "--out", f"{tmp_path}/out", "--overwrite", "--counts"]) == 0
    assert "pairs of event and subscriber" in capsys.readouterr().out
    assert pq.read_table(tmp_path / "out" / "matches").schema.names == ["event", "count"]
    assert run([*arguments, "--explain", "--index-mb", "0.01"]) == 0
    assert "divided into cells" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--counts", "--pairs", "--out", "x"], "cannot be combined"),
        ([], "name a folder for the result"),
        (["--explain", "--index-mb", "0"], "must be more than 0"),
    ],
)
def test_options_that_cannot_be_are_refused_before_spark_starts(options, problem, capsys):
    assert run(["match", "--events", "e.parquet", "--subscriptions", "s.parquet", *options]) == 2
    assert problem in capsys.readouterr().err


def test_a_plan_is_printed_for_people_and_programs(capsys):
    plan = MatchPlan(subscriptions=10, events=20, index_mb=0.1, index_mb_max=512)
    show_plan(plan, as_json=True)
    assert json.loads(capsys.readouterr().out)["way"] == "one index for all"
    show_plan(plan, as_json=False)
    assert "no more than 512 MB" in capsys.readouterr().out
