"""Does what came in messages become files that are read as a broker's own?"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.pipeline.records import record

from betimes.model.telemetry import Published, Sent
from betimes.telemetry import spool as module
from betimes.telemetry.files import TelemetryFileError, labels_in, part_facts, read_table
from betimes.telemetry.messages import TelemetryMessageError, packed_records, telemetry_topic
from betimes.telemetry.spool import Spool


def told(spool: Spool, broker: str, numbers: range, at_s: float = 1_000.0) -> None:
    records = [record(Published, broker=broker, number=number) for number in numbers]
    spool.take(telemetry_topic(broker, "published"), packed_records("published", records), at_s)


def test_what_all_brokers_told_of_a_kind_is_one_file_as_old_as_its_oldest_message(tmp_path):
    spool = Spool(tmp_path)
    told(spool, "a", range(3), 1_000.0)
    told(spool, "b/1", range(2), 2_000.0)
    spool.take(telemetry_topic("a", "sent"), packed_records("sent", [record(Sent)]), 1_500.0)
    files = spool.write()
    assert [path.parent.name for path in files] == ["published", "sent"]
    assert [path.stat().st_mtime for path in files] == [1_000.0, 1_500.0]
    assert read_table(tmp_path, "published")["broker"].to_pylist() == ["a"] * 3 + ["b/1"] * 2
    assert labels_in(tmp_path) == {"a", "b/1"}
    assert spool.write() == []
    told(spool, "a", range(1), 3_000.0)
    (new,) = spool.write()
    assert new.stat().st_mtime == 3_000.0
    spool.remove([*files, new, tmp_path / "gone"])
    assert not list(tmp_path.glob("*/part-*"))


def test_what_cannot_be_read_becomes_a_damaged_file(tmp_path):
    spool = Spool(tmp_path)
    spool.take(telemetry_topic("a", "sent"), b"nonsense", 1.0)
    (path,) = spool.write()
    with pytest.raises(TelemetryFileError, match="not a whole Parquet file"):
        part_facts(path)
    with pytest.raises(TelemetryMessageError):
        spool.take("$betimes/telemetry/a/unheard-of", b"", 1.0)


def test_what_there_is_no_room_for_is_counted(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_HELD_MAX", 5)
    monkeypatch.setattr(module, "FILES_MAX", 2)
    monkeypatch.setattr(module, "BROKEN_HELD_MAX", 1)
    spool = Spool(tmp_path)
    told(spool, "a", range(4))
    told(spool, "a", range(4))
    for _ in range(2):
        spool.take(telemetry_topic("a", "sent"), b"nonsense", 1.0)
    assert spool.left_out == 3 + 1
    spool.write()
    assert pq.read_table(tmp_path / "published").num_rows == 5
    told(spool, "a", range(1))
    spool.write()
    assert len(list(tmp_path.glob("*/part-*"))) == 2
    assert spool.left_out == 3 + 1 + 1
