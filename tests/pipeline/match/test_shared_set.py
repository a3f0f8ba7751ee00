"""Does every task find the index of its own frame, and is an index gone when its last reader is?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.broadcasts import broadcast_files, is_collected
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.pipeline.match.api import match
from betimes.pipeline.match.plan import MatchSettings
from betimes.pipeline.match.shared_set import KEPT_MAX, SetPlace, SharedSet, kept_set, set_for_job
from betimes.pipeline.rows.subscription_set import (
    MAGIC,
    SubscriptionSet,
    digest_of,
    load_set,
    save_set,
    set_parts,
)
from betimes.pipeline.rows.subscriptions import SubscriptionShape, read_subscriptions


def built(wishes: pa.Table) -> SubscriptionSet:
    return SubscriptionSet(read_subscriptions(wishes, SubscriptionShape.of(wishes.schema))[0])


def placed(folder: Path, name: str, wishes: pa.Table) -> SetPlace:
    wanted = built(wishes)
    save_set(wanted, folder / name)
    return SetPlace(digest=digest_of(set_parts(wanted)), path=str(folder / name))


def test_a_worker_opens_a_set_once_and_keeps_few(tmp_path):
    places = [placed(tmp_path, str(count), random_wishes(count)) for count in range(5, 6 + KEPT_MAX)]
    first = kept_set(places[0])
    assert kept_set(places[0]) is first
    for place in places[1:]:
        kept_set(place)
    assert kept_set(places[0]) is not first


def test_another_set_under_the_name_of_an_earlier_one_is_another_set(tmp_path):
    assert len(kept_set(placed(tmp_path, "same", random_wishes(5)))) == 5
    assert len(kept_set(placed(tmp_path, "same", random_wishes(7)))) == 7


@pytest.mark.long
def test_a_set_is_found_behind_a_few_other_bytes(tmp_path):
    content = b"".join(set_parts(built(random_wishes(300))))
    for lead in (0, 7, 57, 64):
        (tmp_path / "set").write_bytes(bytes(lead) + content)
        assert len(load_set(tmp_path / "set")) == 300


@pytest.mark.spark
def test_a_large_broadcast_is_mapped_at_whole_cache_lines(spark):
    wanted, before = built(random_wishes(4000)), broadcast_files(spark)
    shared = SharedSet(spark, wanted)

    def told(batches):
        for _ in batches:
            place = shared_place
            content = Path(place.broadcast._path).read_bytes()
            found = content.find(MAGIC), len(place.load()), kept_set(place) is kept_set(place)
            yield pa.RecordBatch.from_pylist([dict(zip("abc", found, strict=True))])

    shared_place: Any = shared.place
    (row,) = spark.range(1).mapInArrow(told, "a long, b long, c boolean").collect()
    assert (row.a, row.b, row.c) == (64, 4000, True)
    assert broadcast_files(spark) - before
    shared.release()
    assert not broadcast_files(spark) - before


@pytest.mark.spark
def test_a_job_leaves_nothing_of_its_set(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with set_for_job(spark, built(random_wishes(20))) as place:
        assert len(place.load()) == 20
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_a_frame_keeps_its_index_and_leaves_nothing_when_it_is_gone(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = broadcast_files(spark)
    events, wishes = random_events(60), random_wishes(30)
    frame = match(spark.createDataFrame(events), spark.createDataFrame(wishes)).frame.select("*")
    spark.sparkContext._jvm.System.gc()
    rows = frame.collect()
    assert {row.event: sorted(row.subscribers) for row in rows} == expected(events, wishes)
    assert broadcast_files(spark) != before
    del frame
    assert is_collected(spark, before)
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_matching_runs_no_job_on_its_events(spark):
    def fail(batches):
        raise AssertionError("an event was read")

    events = spark.createDataFrame(random_events(4)).mapInArrow(fail, "event bigint, speed double")
    wishes = spark.createDataFrame(random_wishes(300))
    for settings in (MatchSettings(), MatchSettings(index_mb_max=0.02)):
        found = match(events, wishes, settings=settings)
        assert found.plan.events is None
        assert found.frame.columns == ["event", "subscribers"]
