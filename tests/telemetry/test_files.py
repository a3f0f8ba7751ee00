"""Do records come back from their files, and does every damaged file get a message that names it?"""

from __future__ import annotations

import math
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from betimes.model.errors import SettingError
from betimes.model.telemetry import Delivered, Dropped, Published, Reason
from betimes.telemetry.files import (
    KINDS,
    TelemetryFileError,
    TelemetryWriter,
    is_unfinished,
    labels_in,
    part_facts,
    part_files,
    read_table,
    table_schema,
)


def published(number):
    return Published(
        time_s=number * 0.5,
        broker="b1",
        origin="b1",
        number=number,
        publisher="p",
        topic="",
        size_kb=50.0,
        deadline_s=math.inf,
        wanted=3,
    )


DROPPED = Dropped(
    time_s=1.0,
    broker="b1",
    destination="b9",
    origin="b1",
    number=4,
    publisher="p",
    age_s=2.0,
    reason=Reason.HOPELESS,
    subscribers=2,
)


@pytest.fixture
def written(tmp_path):
    with TelemetryWriter(tmp_path / "run") as telemetry:
        telemetry.write(published(1))
        telemetry.write(DROPPED)
    return tmp_path / "run"


def test_records_come_back_as_they_went_in(written):
    assert read_table(written, "published").to_pylist()[0]["deadline_s"] == math.inf
    row = read_table(written, "dropped").to_pylist()[0]
    assert Dropped(**row) == DROPPED
    assert row["reason"] == "hopeless"


def test_a_kind_of_which_nothing_happened_is_an_empty_table(written):
    table = read_table(written, "delivered")
    assert table.num_rows == 0
    assert table.schema == table_schema("delivered")


def test_every_kind_of_record_has_a_schema():
    events = {"published", "queued", "sent", "received", "dropped", "delivered"}
    assert set(KINDS) == events | {"subscribed", "unsubscribed", "answered"}
    assert table_schema("delivered").field("out_of_order").type == pa.bool_()
    assert table_schema("delivered").names[0] == "time_s"
    assert len(table_schema("delivered")) == len(Delivered.__dataclass_fields__)


def test_full_parts_are_written_in_order(tmp_path):
    with TelemetryWriter(tmp_path, rows_per_part=3) as telemetry:
        for number in range(8):
            telemetry.write(published(number))
    assert [path.name for path in part_files(tmp_path / "published")] == [
        "part-00000.parquet",
        "part-00001.parquet",
        "part-00002.parquet",
    ]
    assert read_table(tmp_path, "published")["number"].to_pylist() == list(range(8))


def test_flushed_records_are_readable_before_the_end(tmp_path):
    with TelemetryWriter(tmp_path) as telemetry:
        telemetry.write(published(7))
        telemetry.flush()
        assert read_table(tmp_path, "published")["number"].to_pylist() == [7]
    assert read_table(tmp_path, "published").num_rows == 1


def test_what_was_seen_before_a_failure_is_kept(tmp_path):
    def fail_halfway():
        with TelemetryWriter(tmp_path) as telemetry:
            telemetry.write(published(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert read_table(tmp_path, "published").num_rows == 1


def test_a_directory_with_telemetry_is_not_written_over(written):
    with pytest.raises(TelemetryFileError, match="already holds telemetry"):
        TelemetryWriter(written)


def test_appending_goes_on_with_the_next_part(written):
    with TelemetryWriter(written, append=True) as telemetry:
        telemetry.write(published(2))
    assert read_table(written, "published")["number"].to_pylist() == [1, 2]


def test_an_unfinished_part_is_not_read(written):
    (written / "published" / ".part-00001.parquet-abc").write_bytes(b"half")
    assert read_table(written, "published").num_rows == 1


@pytest.mark.parametrize("content", [b"", b"not Parquet at all"])
def test_a_corrupt_file_is_named(written, content):
    part = written / "published" / "part-00000.parquet"
    part.write_bytes(content)
    with pytest.raises(TelemetryFileError, match="part-00000") as caught:
        read_table(written, "published")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("keep", [10, 0.5, 0.99])
def test_a_half_file_is_named(written, keep):
    part = written / "published" / "part-00000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[: keep if keep > 1 else int(len(whole) * keep)])
    with pytest.raises(TelemetryFileError, match="part-00000"):
        read_table(written, "published")


def test_damaged_pages_are_named(written):
    part = written / "published" / "part-00000.parquet"
    whole = bytearray(part.read_bytes())
    whole[4:400] = bytes(396)
    part.write_bytes(bytes(whole))
    with pytest.raises(TelemetryFileError, match="part-00000"):
        read_table(written, "published")


def test_other_columns_are_listed(written):
    table = pa.table({"time_s": [1.0], "broker": [5], "colour": ["red"]})
    pq.write_table(table, written / "dropped" / "part-00001.parquet")
    with pytest.raises(TelemetryFileError) as caught:
        read_table(written, "dropped")
    for fact in (
        "part-00001",
        "lacks column share",
        "unknown column colour",
        "broker is int64, not string",
    ):
        assert fact in str(caught.value)


def test_missing_values_are_refused(written):
    table = read_table(written, "dropped")
    columns = {name: table[name].to_pylist() for name in table.column_names} | {"age_s": [None]}
    schema = pa.schema([pa.field(field.name, field.type) for field in table.schema])
    pq.write_table(pa.table(columns, schema=schema), written / "dropped" / "part-00001.parquet")
    with pytest.raises(TelemetryFileError, match="missing values in age_s"):
        read_table(written, "dropped")


def test_a_missing_folder_or_part_is_named(tmp_path):
    with pytest.raises(TelemetryFileError, match="no such folder"):
        read_table(tmp_path, "sent")
    (tmp_path / "sent").mkdir()
    with pytest.raises(TelemetryFileError, match="holds no part"):
        read_table(tmp_path, "sent")


def test_an_unknown_kind_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(SettingError, match="one of published, queued"):
        read_table(tmp_path, "eaten")


def test_a_place_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(TelemetryFileError, match="cannot be made"):
        TelemetryWriter(tmp_path / "file")


def test_a_part_has_at_least_one_row(tmp_path):
    with pytest.raises(SettingError, match="at least 1"):
        TelemetryWriter(tmp_path, rows_per_part=0)


def test_what_was_cut_short_is_marked_as_unfinished(tmp_path):
    with TelemetryWriter(tmp_path / "whole"):
        assert is_unfinished(tmp_path / "whole")
    assert not is_unfinished(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt), TelemetryWriter(tmp_path / "cut"):
        raise KeyboardInterrupt
    assert is_unfinished(tmp_path / "cut")
    assert read_table(tmp_path / "cut", "sent").num_rows == 0


def test_a_folder_that_cannot_be_listed_is_told(tmp_path, monkeypatch):
    with TelemetryWriter(tmp_path):
        pass

    def refuse(_folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("betimes.telemetry.files.part_files", refuse)
    with pytest.raises(TelemetryFileError, match="Permission denied"):
        read_table(tmp_path, "sent")


def test_several_writers_share_a_directory_by_their_labels(tmp_path):
    with TelemetryWriter(tmp_path, label="a/b") as one, TelemetryWriter(tmp_path, label="c-1") as other:
        one.write(published(1))
        other.write(published(2))
        other.flush()
        other.write(published(3))
        assert is_unfinished(tmp_path)
    assert not is_unfinished(tmp_path)
    assert read_table(tmp_path, "published")["number"].to_pylist() == [1, 2, 3]
    with TelemetryWriter(tmp_path, label="c-1", append=True) as again:
        again.write(published(4))
    assert read_table(tmp_path, "published")["number"].to_pylist() == [1, 2, 3, 4]
    with pytest.raises(TelemetryFileError, match="already holds"):
        TelemetryWriter(tmp_path, label="c-1")


def test_what_is_let_go_of_can_be_written_while_more_comes(tmp_path):
    with TelemetryWriter(tmp_path) as telemetry:
        telemetry.write(published(1))
        write = telemetry.detach()
        telemetry.write(published(2))
        write()
    assert read_table(tmp_path, "published")["number"].to_pylist() == [1, 2]


def test_the_oldest_parts_go_when_there_is_too_much(tmp_path):
    with TelemetryWriter(tmp_path, label="a", rows_per_part=1) as telemetry:
        for number in range(10):
            telemetry.write(published(number))
        sizes = [path.stat().st_size for path in part_files(tmp_path / "published")]
        assert telemetry.prune(sum(sizes)) == 0
        assert telemetry.prune(sum(sizes[-3:])) == 7
    assert read_table(tmp_path, "published")["number"].to_pylist() == [7, 8, 9]


def test_who_writes_is_known_by_label_from_the_first_moment(tmp_path):
    assert labels_in(tmp_path) == frozenset()
    with TelemetryWriter(tmp_path):
        assert labels_in(tmp_path) == frozenset()  # a simulator has no label
    with TelemetryWriter(tmp_path, label="a/1-2"):
        assert labels_in(tmp_path) == {"a/1-2"}
    assert labels_in(tmp_path) == {"a/1-2"}


def test_the_end_of_a_part_tells_its_columns_and_rows(tmp_path):
    with TelemetryWriter(tmp_path):
        pass
    schema, rows = part_facts(tmp_path / "sent" / "part-00000.parquet")
    assert (schema.names, rows) == (table_schema("sent").names, 0)
