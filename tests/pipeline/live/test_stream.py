"""Is each file of telemetry acted on once, also by a stream that is started again?"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.pipeline.records import record, written

from betimes.model.errors import BetimesError
from betimes.model.telemetry import Published
from betimes.pipeline.live.stream import NewFile, follow, is_part, path_of


@pytest.mark.spark
def test_new_files_come_once_and_a_failure_is_told(spark, tmp_path: Path):
    telemetry, place = tmp_path / "telemetry", tmp_path / "stream"
    came: list[tuple[int, list[NewFile]]] = []

    def run_once() -> None:
        follow(
            spark,
            telemetry,
            place,
            lambda batch, files: came.append((batch, files)),
            every_s=1.0,
            ending=threading.Event(),
            once=True,
        )

    written(telemetry, [record(Published)], label="b/1")
    (telemetry / "published" / "part-of-something-else.parquet").write_bytes(b"")
    run_once()
    written(telemetry, [record(Published)], label="b2")
    run_once()
    assert [batch for batch, _ in came] == [0, 1]
    first, second = ({each.path for each in files} for _, files in came)
    assert telemetry / "published" / "part-b%2F1-00000.parquet" in first
    assert first | second == {path for path in telemetry.glob("*/part-*.parquet") if is_part(path)}
    assert not first & second
    path = telemetry / "published" / "part-b2-00000.parquet"
    written_at_s = {each.path: each.written_at_s for _, files in came for each in files}
    assert written_at_s[path] == pytest.approx(path.stat().st_mtime, abs=0.01)

    def fail(batch: int, files: list[NewFile]) -> None:
        raise BetimesError("no more")

    with pytest.raises(BetimesError, match="the stream of telemetry broke"):
        follow(spark, telemetry, tmp_path / "other", fail, every_s=1.0, ending=threading.Event(), once=True)


def test_only_parts_of_telemetry_are_taken():
    assert is_part(Path("x/sent/part-b1-00000.parquet"))
    assert not is_part(Path("x/other/part-b1-00000.parquet"))
    assert not is_part(Path("x/sent/part.parquet"))
    assert path_of("file:///a/b c") == Path("/a/b c")
