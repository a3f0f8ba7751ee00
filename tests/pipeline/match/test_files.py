"""Does a match of files end with the answer, what was set aside and a summary, and nothing half done?"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.match_tables import expected, random_events, random_wishes

from betimes.model.errors import BetimesError
from betimes.pipeline.match.files import MatchError, MatchRequest, check_out, explain_files, match_files
from betimes.pipeline.match.forms import Form
from betimes.pipeline.match.plan import MatchSettings

SMALL = MatchSettings(index_mb_max=0.02, tasks=4)


def tell(told: list[tuple[int, int]], done: int, total: int) -> None:
    told.append((done, total))


def written(tmp_path, events, wishes):
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=70)
    pq.write_table(wishes, tmp_path / "wishes.parquet")
    return str(tmp_path / "events.parquet"), str(tmp_path / "wishes.parquet")


@pytest.mark.spark
@pytest.mark.parametrize("settings", [MatchSettings(), SMALL], ids=["whole", "divided"])
def test_the_answer_is_written_with_a_summary(spark, tmp_path, settings):
    events, wishes = random_events(300), random_wishes(120)
    happened, wished = written(tmp_path, events, wishes)
    wanted = expected(events, wishes)
    for form in Form:
        out = tmp_path / form
        told: list[tuple[int, int]] = []
        request = MatchRequest(events=happened, subscriptions=wished, out=out, form=form, settings=settings)
        facts = match_files(spark, request, partial(tell, told))
        answer = pq.read_table(out / "matches")
        assert facts.wanted == len(wanted)
        assert facts.pairs == sum(map(len, wanted.values()))
        assert facts.plan.is_divided == (settings is SMALL)
        assert answer.num_rows == (facts.pairs if form is Form.PAIRS else len(wanted))
        assert json.loads((out / "summary.json").read_text())["pairs"] == facts.pairs
        assert told[-1][0] == told[-1][1]
        assert not [path for path in out.iterdir() if path.name.startswith(".matches")]
        if form is Form.LISTS:
            rows = zip(answer["event"].to_pylist(), answer["subscribers"].to_pylist(), strict=True)
            assert {event: sorted(names) for event, names in rows} == wanted


@pytest.mark.spark
@pytest.mark.parametrize("settings", [MatchSettings(), SMALL], ids=["whole", "divided"])
def test_what_cannot_be_read_is_set_aside_with_its_place(spark, tmp_path, settings):
    events = pa.table({"event": [1, 2, 3], "content": ['{"x": 5}', "{", '{"x": 7}']})
    texts = [f"x > {number}" for number in range(200)]
    texts[7] = "x > "
    wishes = pa.table({"subscriber": [f"s{number}" for number in range(200)], "filter": texts})
    happened, wished = written(tmp_path, events, wishes)
    out = tmp_path / "out"
    facts = match_files(
        spark, MatchRequest(events=happened, subscriptions=wished, out=out, settings=settings)
    )
    assert facts.set_aside == {"filter that cannot be read": 1, "event that cannot be read": 1}
    assert facts.unreadable == 1
    rows = {row["reason"]: row for row in pq.read_table(out / "quarantine.parquet").to_pylist()}
    assert rows["filter that cannot be read"]["name"] == "s7"
    assert rows["filter that cannot be read"]["row"] == 8
    assert facts.pairs == 5 + 7
    assert facts.wanted == 2


@pytest.mark.spark
def test_a_plan_is_told_without_matching(spark, tmp_path):
    happened, wished = written(tmp_path, random_events(50), random_wishes(300))
    request = MatchRequest(events=happened, subscriptions=wished, out=tmp_path / "out", settings=SMALL)
    plan = explain_files(spark, request)
    assert plan.facts()["way"] == "divided into cells"
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_a_match_that_fails_leaves_the_answer_that_was_there(spark, tmp_path):
    happened, wished = written(tmp_path, random_events(50), random_wishes(30))
    out = tmp_path / "out"
    match_files(spark, MatchRequest(events=happened, subscriptions=wished, out=out))
    before = sorted(path.name for path in (out / "matches").iterdir())
    with pytest.raises(MatchError, match="already holds matches"):
        match_files(spark, MatchRequest(events=happened, subscriptions=wished, out=out))
    whole = Path(happened).read_bytes()
    Path(happened).write_bytes(whole[:400] + b"\0" * 400 + whole[800:])
    with pytest.raises(BetimesError, match="failed in Spark"):
        match_files(spark, MatchRequest(events=happened, subscriptions=wished, out=out, overwrite=True))
    assert sorted(path.name for path in (out / "matches").iterdir()) == before
    assert not list(out.glob(".*"))


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "out", Path("/proc/out")):
        with pytest.raises(BetimesError, match=r"cannot be written to .*\nhint: name another"):
            check_out(place, overwrite=False)
    check_out(tmp_path / "new" / "out", overwrite=False)
    assert not (tmp_path / "new").exists()


@pytest.mark.spark
def test_where_no_subscription_can_be_read_there_is_no_answer(spark, tmp_path):
    happened, wished = written(
        tmp_path, pa.table({"event": [1], "x": [0.0]}), pa.table({"subscriber": ["a"], "filter": ["x >"]})
    )
    with pytest.raises(BetimesError, match=r"filter that cannot be read: .*\nhint: none of its 1 subscr"):
        match_files(spark, MatchRequest(events=happened, subscriptions=wished, out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_where_nobody_wants_anything_the_answer_is_a_table_without_rows(spark, tmp_path):
    happened, wished = written(
        tmp_path, pa.table({"event": [1], "x": [0.0]}), pa.table({"subscriber": ["a"], "x>=": [1.0]})
    )
    match_files(spark, MatchRequest(events=happened, subscriptions=wished, out=tmp_path / "out"))
    found = spark.read.parquet(str(tmp_path / "out" / "matches"))
    assert (found.columns, found.count()) == (["event", "subscribers"], 0)
