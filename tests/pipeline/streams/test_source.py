"""Does a stream bring every message once, go on from its checkpoint, and tell what it could not read?"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.client.blocking.test_ranges import keeping_broker, publish
from tests.interop.brokers import Broker, running_broker
from tests.pipeline.schemas import schema_of

from betimes.client.errors import UnreachableError
from betimes.model.errors import SettingError
from betimes.pipeline.streams.options import read_source_options
from betimes.pipeline.streams.rows import SCHEMA
from betimes.pipeline.streams.source import BatchReader, StreamReader

pytestmark = pytest.mark.live


def options_for(broker: Broker, **more: object) -> Any:
    texts = {name: str(value) for name, value in more.items()}
    return read_source_options({"url": f"mqtt://127.0.0.1:{broker.port}", "topic": "t", **texts})


def stream(broker: Broker, **more: object) -> StreamReader:
    return StreamReader(options_for(broker, **more), schema_of(SCHEMA))


def ids(reader: Any, partitions: Any) -> list[str]:
    return [row for each in partitions for batch in reader.read(each) for row in batch["id"].to_pylist()]


def at(number: int, lost: int = 0) -> dict[str, Any]:
    return {"positions": {"b1": number}, "lost": lost}


def test_a_new_stream_begins_now_or_with_all_that_is_kept():
    with keeping_broker() as broker:
        publish(broker, range(1, 6))
        assert stream(broker).initialOffset() == at(5)
        assert stream(broker, starting="earliest").initialOffset() == at(0)
        assert stream(broker, starting='{"b1": 3}').initialOffset() == at(3)


def test_a_batch_reaches_as_far_as_the_limit_says():
    with keeping_broker() as broker:
        reader = stream(broker, messages_per_batch=3)
        publish(broker, range(1, 8))
        assert reader.getDefaultReadLimit() == ReadMaxRows(3)
        assert reader.latestOffset(at(2), ReadMaxRows(3)) == at(5)
        assert reader.latestOffset(at(2), ReadAllAvailable()) == at(7)
        assert reader.latestOffset(at(7), ReadMaxRows(3)) == at(7)
        assert (reader.reportLatestOffset() or {})["positions"] == {"b1": 7}
        reader.stop()


def test_a_stream_that_is_to_end_reads_no_further_than_it_was_told():
    with keeping_broker() as broker:
        reader = stream(broker)
        publish(broker, range(1, 8))
        reader.prepareForTriggerAvailableNow()
        publish(broker, range(8, 12))
        assert reader.latestOffset(at(2), ReadAllAvailable()) == at(7)
        assert reader.latestOffset(at(9), ReadAllAvailable()) == at(9)
        reader.stop()


def test_partitions_are_together_the_whole_and_can_be_read_again():
    with keeping_broker() as broker:
        publish(broker, range(1, 5_001))
        reader = stream(broker, partitions=3)
        ranges = reader.partitions(at(1_000), at(4_900))
        expected = [f"b1:{number}" for number in range(1_001, 4_901)]
        assert len(ranges) == 3
        for _ in range(2):
            assert ids(reader, ranges) == expected
        assert reader.partitions(at(7), at(7)) == []
        assert len(reader.partitions(at(7), at(9))) == 1
        reader.stop()


def test_what_is_lost_is_counted_in_the_offset_and_told_in_a_table(tmp_path):
    with keeping_broker(100) as broker:
        reader = stream(broker, gaps=tmp_path / "gaps", messages_per_batch=50, failOnDataLoss=False)
        for start in range(1, 301, 10):
            publish(broker, range(start, start + 10))
        end = reader.latestOffset(at(150), ReadMaxRows(50))
        assert end == at(250, lost=50)
        for start in range(301, 341, 10):  # while the batch is to be read, some of it is overwritten
            publish(broker, range(start, start + 10))
        assert len(ids(reader, reader.partitions(at(150), end))) == 10
        told = pq.read_table(tmp_path / "gaps").to_pylist()
        assert [(row["first"], row["last"], row["at_most"]) for row in told] == [(151, 240, 90)]
        assert reader.latestOffset(end, ReadMaxRows(50))["lost"] == 90
        reader.stop()


def test_what_is_lost_before_a_batch_is_read_again_after_a_restart_is_counted_too():
    with keeping_broker(100) as broker:
        publish(broker, range(1, 51))
        killed = stream(broker)
        end = killed.latestOffset(at(0), ReadAllAvailable())
        assert end == at(50)
        killed.stop()
        for start in range(51, 331, 10):
            publish(broker, range(start, start + 10))
        restarted = stream(broker, failOnDataLoss=False)
        assert ids(restarted, restarted.partitions(at(0), end)) == []
        assert restarted.latestOffset(end, ReadAllAvailable()) == at(330, lost=230)
        restarted.stop()


def test_a_broker_that_is_away_is_waited_for_and_not_for_ever():
    with keeping_broker() as broker:
        patient, hasty = stream(broker), stream(broker, reconnect="0s")
        assert patient.latestOffset(at(0), ReadAllAvailable()) == at(0)
    assert patient.latestOffset(at(0), ReadAllAvailable()) == at(0)
    assert patient.reportLatestOffset() is None
    hasty._wait_or_raise(UnreachableError("away"))
    with pytest.raises(UnreachableError):
        hasty.latestOffset(at(0), ReadAllAvailable())


def test_a_broker_that_does_not_keep_everything_is_refused_unless_that_will_do():
    from betimes.model.buffer_settings import BufferSettings, PartitionTerms

    buffer = BufferSettings(partitions=(PartitionTerms(pattern="u/#"),))
    with running_broker(buffer=buffer) as broker:
        with pytest.raises(SettingError, match="does not keep, everything"):
            stream(broker).initialOffset()
        assert stream(broker, part="accept").initialOffset() == at(0)


def test_what_is_kept_is_read_at_once():
    with keeping_broker() as broker:
        publish(broker, range(1, 9))
        reader = BatchReader(options_for(broker, starting='{"b1": 2}'), schema_of("id string"))
        assert ids(reader, reader.partitions()) == [f"b1:{number}" for number in range(3, 9)]
