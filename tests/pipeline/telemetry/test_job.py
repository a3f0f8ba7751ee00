"""Does telemetry become tables, the same ones every time, and without losing a good row?"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.pipeline.records import record, small_world, written

from betimes.cli.simulate import simulate
from betimes.language.files.scenario_file import read_scenario
from betimes.model.errors import BetimesError, SettingError
from betimes.model.telemetry import Answered, Published, Received, Record, Subscribed
from betimes.pipeline.tables.files import current_tables, read_arrow
from betimes.pipeline.tables.shapes import (
    ADMISSIONS,
    DELIVERIES,
    EVENTS,
    LINKS,
    MATCHES,
    QUARANTINE,
    RELIABILITY,
    TABLES,
    TRANSFERS,
)
from betimes.pipeline.telemetry import job
from betimes.pipeline.telemetry.job import PipelineSettings, compiling, read_brokers, run_pipeline
from betimes.pipeline.telemetry.run_facts import read_facts
from betimes.pipeline.telemetry.survey import read_since

CITY = Path(__file__).resolve().parents[3] / "examples" / "city.toml"


def contents(directory):
    """Return all rows of all tables, in an order of their own."""
    folder = current_tables(directory)
    return {
        table.name: sorted(map(repr, read_arrow(table, folder).to_pylist()))
        for table in TABLES.values()
        if table.is_filled
    } | {"run.json": (folder / "run.json").read_text()}


@pytest.mark.spark
def test_a_simulated_run_is_found_again_and_a_second_run_changes_nothing(spark, tmp_path, monkeypatch):
    scenario = read_scenario(CITY.read_text(), "city")
    outcome = simulate(scenario, "fifo", 3, tmp_path / "telemetry")
    steps = []
    facts = run_pipeline(
        spark,
        tmp_path / "telemetry",
        tmp_path / "tables",
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps == sorted(steps)
    assert steps[-1] == (job.STEPS, job.STEPS)
    assert (facts.wanted, facts.on_time) == (outcome.wanted, outcome.in_time)
    assert facts.earning == pytest.approx(outcome.earning)
    assert facts.quarantined == {}
    by_subscriber = {
        row["subscriber"]: row["on_time_share"]
        for row in read_arrow(RELIABILITY, current_tables(tmp_path / "tables")).to_pylist()
    }
    assert by_subscriber == {
        each.subscriber: pytest.approx(each.on_time_share) for each in outcome.subscribers if each.wanted
    }
    first = contents(tmp_path / "tables")
    run_pipeline(spark, tmp_path / "telemetry", tmp_path / "tables")
    assert contents(tmp_path / "tables") == first

    def break_off(*_, **__):
        raise RuntimeError("the power failed")

    monkeypatch.setattr(
        "betimes.pipeline.telemetry.distributions.link_losses", break_off
    )  # when the base tables are written
    with pytest.raises(RuntimeError, match="the power failed"):
        run_pipeline(
            spark, tmp_path / "telemetry", tmp_path / "tables", PipelineSettings(since=read_since("9s"))
        )
    assert contents(tmp_path / "tables") == first  # a run that is cut short leaves the old tables


@pytest.mark.spark
def test_bad_rows_are_set_aside_and_clocks_an_hour_apart_do_not_matter(spark, tmp_path):
    answer = record(Answered, broker="b", reliability=0.9, admitted=False, reason="too much")
    records = [*small_world(20), answer]
    bad = [record(Received, neighbour="nowhere", number=77), record(Published, time_s=-1.0, number=78)]
    written(tmp_path / "telemetry", [each for each in records if each.broker == "a"] + bad, label="a")
    written(tmp_path / "telemetry", [each for each in records if each.broker == "b"], label="b")
    part = tmp_path / "telemetry" / "received" / "part-b-00000.parquet"
    pq.write_table(pq.read_table(part).slice(0, 3), part.with_name("part-copy-00000.parquet"))
    facts = run_pipeline(spark, tmp_path / "telemetry", tmp_path / "tables")
    assert facts.quarantined == {"duplicate": 3, "impossible time": 1, "unknown broker": 1}
    folder = current_tables(tmp_path / "tables")
    for table, rows in ((EVENTS, 20), (TRANSFERS, 20), (DELIVERIES, 20), (MATCHES, 20), (QUARANTINE, 5)):
        assert read_arrow(table, folder).num_rows == rows, table.name
    (told,) = read_arrow(ADMISSIONS, folder).to_pylist()
    assert (told["subscriber"], told["home"], told["predicted_share"]) == ("s", "b", 0.5)
    assert (told["admitted"], told["reason"]) == (False, "too much")
    assert (facts.wanted, facts.on_time, facts.earning) == (20.0, 20.0, 40.0)
    (link,) = read_arrow(LINKS, folder).to_pylist()
    assert (link["source"], link["target"], link["loss"]) == ("a", "b", 0.0)
    assert link["s_per_kb_mean"] == pytest.approx(0.25)


@pytest.mark.spark
def test_only_the_last_seconds_of_each_broker_may_count(spark, tmp_path):
    written(tmp_path / "telemetry", small_world(20))
    settings = PipelineSettings(since=read_since("5s"), brokers=("a", "b"))
    facts = run_pipeline(spark, tmp_path / "telemetry", tmp_path / "tables", settings)
    assert facts.rows["events"] == 5  # the last of a's rows is a message sent a quarter of a second later
    assert facts.rows["subscriptions"] == 1  # told long before
    assert (facts.wanted, facts.on_time_share) == (5.0, 1.0)


@pytest.mark.spark
def test_spark_compiles_only_what_pays_and_then_as_before(spark):
    name = "spark.sql.codegen.wholeStage"
    before = spark.conf.get(name)
    with compiling(spark, pays=False):
        assert spark.conf.get(name) == "false"
        assert spark.range(5).groupBy().sum("id").collect()[0][0] == 10
    with compiling(spark, pays=True):
        assert spark.conf.get(name) == before
    assert spark.conf.get(name) == before


@pytest.mark.spark
def test_files_without_rows_are_told(spark, tmp_path):
    written(tmp_path / "telemetry", [])
    with pytest.raises(BetimesError, match="telemetry: its files hold no rows"):
        run_pipeline(spark, tmp_path / "telemetry", tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_a_broker_named_twice_is_one_and_one_without_a_name_is_a_mistake():
    assert read_brokers(["a", "b", "a"]) == ("a", "b")
    with pytest.raises(SettingError, match="--broker"):
        read_brokers([" "])


def world(events: int, subscribers: int, copies: int = 0) -> list[Record]:
    """Return so many events for so many subscribers, the first ones of them recorded twice."""
    base = small_world(events)
    wishes = [record(Subscribed, broker="b", time_s=3600.0, subscriber=f"s{n}") for n in range(subscribers)]
    return [*wishes, *base[1:], *base[1 : 1 + copies]]


def sums(directory):
    """Return some figures of the current tables."""
    facts = read_facts(current_tables(directory))
    folder = current_tables(directory)
    people = sorted(row["subscriber"] for row in read_arrow(RELIABILITY, folder).to_pylist())
    return facts.rows["matches"], facts.quarantined, facts.rows["deliveries"], people


@pytest.mark.spark
def test_runs_in_one_session_know_nothing_of_each_other(spark, tmp_path):
    """Files of the same names change, and folders of runs are used again."""
    place, tables = tmp_path / "telemetry", tmp_path / "tables"
    for turn, (events, subscribers, copies) in enumerate([(5, 3, 2), (9, 1, 4)]):
        for gone in (place, tables):
            shutil.rmtree(gone, ignore_errors=True)
        written(place, world(events, subscribers, copies))
        if turn == 1:
            with pytest.raises(RuntimeError, match="half way"):
                run_pipeline(spark, place, tables, progress=_fails_half_way)
        run_pipeline(spark, place, tables)
        found = sums(tables)
        assert found[0] == events * subscribers
        assert found[1] == ({"duplicate": copies} if copies else {})
        assert found[3] == [f"s{n}" for n in range(subscribers)]
        assert {each.name for each in current_tables(tables).iterdir()} == {
            *(table.name for table in TABLES.values() if table.is_filled),
            "run.json",
        }
    assert not persisted(spark)


def _fails_half_way(done: int, total: int) -> None:
    if done > total // 2:
        raise RuntimeError("half way")


def persisted(spark) -> int:
    """Return how many frames the session keeps."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


@pytest.mark.spark
def test_two_threads_run_different_telemetry_in_one_session(spark, tmp_path):
    sizes = {"one": (4, 2, 1), "other": (8, 1, 3)}
    for name, size in sizes.items():
        written(tmp_path / name, world(*size))
    with ThreadPoolExecutor(2) as pool:
        started = [
            pool.submit(run_pipeline, spark, tmp_path / each, tmp_path / f"{each}.t") for each in sizes
        ]
        for each in started:
            each.result()
    for name, (events, subscribers, copies) in sizes.items():
        found = sums(tmp_path / f"{name}.t")
        assert found[0] == events * subscribers
        assert found[1] == {"duplicate": copies}
