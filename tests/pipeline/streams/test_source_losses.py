"""Does a query fail where messages are lost, and are its counts true whatever happens to the broker?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from tests.client.blocking.test_ranges import keeping_broker, publish
from tests.interop.brokers import HOST, Broker, running_broker
from tests.pipeline.schemas import schema_of
from tests.pipeline.streams.test_source import at, ids, options_for, stream

from betimes.broker.net.listener import Endpoint
from betimes.client.errors import SubscriptionRefusedError
from betimes.model.buffer_settings import BufferSettings
from betimes.model.errors import SettingError
from betimes.pipeline.streams.losses import DataLossError
from betimes.pipeline.streams.source import BatchReader, StreamReader

pytestmark = pytest.mark.live
LATER = 21_851_302  # where the numbers of a broker begin that was started some seconds later


def overwritten(broker: Broker, count: int = 300) -> None:
    for start in range(1, count + 1, 10):
        publish(broker, range(start, start + 10))


def restarted(broker: Broker, first_number: int = LATER, name: str = "b1"):
    """Return a broker in the place of one that is gone, which remembers nothing."""
    there = Endpoint(host=HOST, port=broker.port)
    return running_broker(endpoint=there, buffer=BufferSettings(), first_number=first_number, name=name)


def test_a_stream_fails_when_the_broker_has_overwritten_what_it_should_read():
    with keeping_broker(100) as broker:
        reader = stream(broker)
        overwritten(broker)
        with pytest.raises(DataLossError) as raised:
            reader.latestOffset(at(150), ReadAllAvailable())
        assert "at most 50 messages are lost: 50 of b1 (overwritten; numbers 151 to 200)" in str(raised.value)
        assert "failOnDataLoss" in str(raised.value)
        reader.stop()


def test_a_task_fails_when_its_range_is_overwritten_before_it_is_read():
    with keeping_broker(100) as broker:
        overwritten(broker, 100)
        for reader in (
            stream(broker),
            BatchReader(options_for(broker, starting='{"b1": 5}', ending="latest"), schema_of("id string")),
        ):
            ranges = (
                reader.partitions(at(5), at(100)) if isinstance(reader, StreamReader) else reader.partitions()
            )
            overwritten(broker, 50)
            with pytest.raises(DataLossError, match=r"of b1 \(overwritten"):
                ids(reader, ranges)
            overwritten(broker, 50)


def test_the_earliest_is_what_is_kept_so_nothing_before_it_is_lost():
    with keeping_broker(100) as broker:
        overwritten(broker)
        reader = stream(broker, startingOffsets="earliest")
        start = reader.initialOffset()
        assert start == at(200)
        assert reader.latestOffset(start, ReadAllAvailable()) == at(300)
        batch = BatchReader(options_for(broker), schema_of("id string"))
        assert len(ids(batch, batch.partitions())) == 100
        reader.stop()


def test_a_broker_that_comes_back_empty_ends_the_query_or_is_told_as_unknown(tmp_path):
    with keeping_broker() as broker:
        publish(broker, range(1, 6))
        strict, tolerant = stream(broker), stream(broker, failOnDataLoss=False, gaps=tmp_path / "gaps")
        for reader in (strict, tolerant):
            assert reader.latestOffset(at(1), ReadAllAvailable()) == at(5)
    with restarted(broker):
        publish(broker, range(1, 4))
        with pytest.raises(DataLossError, match=r"unknown how many .* 6 to 21851301 of b1.* started anew"):
            strict.latestOffset(at(5), ReadAllAvailable())
        end = tolerant.latestOffset(at(5), ReadAllAvailable())
        assert end["lost"] == 0
        assert end["unknown"] == 2  # of the batch before, which was not read, and of this one
        assert len(ids(tolerant, tolerant.partitions(at(5), end))) == 3
        assert tolerant.latestOffset(end, ReadAllAvailable()) == end
        (row,) = pq.read_table(tmp_path / "gaps").to_pylist()
        assert (row["why"], row["at_most"]) == ("not remembered", None)
    strict.stop()
    tolerant.stop()


def test_a_broker_that_comes_back_with_its_clock_behind_is_refused_by_name():
    with keeping_broker() as broker:
        publish(broker, range(1, 6))
        reader = stream(broker, reconnect="0s")
        assert reader.latestOffset(at(0), ReadAllAvailable()) == at(5)
    with restarted(broker, first_number=1):
        assert reader.latestOffset(at(5), ReadAllAvailable()) == at(5)
        with pytest.raises(SubscriptionRefusedError, match="b1 has not numbered so far"):
            reader.latestOffset(at(5), ReadAllAvailable())
    reader.stop()


def test_a_broker_that_changed_its_name_is_an_error_that_names_the_old_one():
    with keeping_broker() as broker:
        publish(broker, range(1, 6))
        reader = stream(broker, reconnect="0s", failOnDataLoss=False)
        assert reader.latestOffset(at(0), ReadAllAvailable()) == at(5)
    with restarted(broker, name="b2"):
        assert reader.latestOffset(at(5), ReadAllAvailable()) == at(5)
        with pytest.raises(SubscriptionRefusedError, match="no broker called b1 is known at b2"):
            reader.latestOffset(at(5), ReadAllAvailable())
    reader.stop()


def test_a_query_that_starts_waits_for_a_broker_that_is_still_away():
    with keeping_broker() as gone:
        pass
    patient, hasty = stream(gone, reconnect="30s"), stream(gone, reconnect="0s")
    with pytest.raises(Exception, match="cannot be reached"):
        hasty.initialOffset()
    asked: list[Callable[[], object]] = [patient.initialOffset, patient.prepareForTriggerAvailableNow]
    found: list[object] = []
    for ask in asked:
        thread = threading.Thread(target=lambda ask=ask: found.append(ask()))
        thread.start()
        time.sleep(0.2)
        with restarted(gone, first_number=6):
            thread.join(60.0)
        patient.stop()
    assert found == [at(5), None]


def test_a_driver_turns_to_the_next_broker_where_one_is_away():
    with keeping_broker() as gone:
        pass
    with keeping_broker() as broker:
        publish(broker, range(1, 4))
        both = f"mqtt://{HOST}:{gone.port} mqtt://{HOST}:{broker.port}"
        reader = stream(broker, url=both)
        assert reader.latestOffset(at(0), ReadAllAvailable()) == at(0)
        assert reader.latestOffset(at(0), ReadAllAvailable()) == at(3)
        reader.stop()


def test_the_time_of_publication_is_the_same_at_every_reading():
    with keeping_broker() as broker:
        publish(broker, range(1, 4))
        reader = BatchReader(options_for(broker), schema_of("published timestamp, age_s double"))
        readings = []
        for _ in range(2):
            time.sleep(0.01)
            readings.append([batch.to_pydict() for batch in reader.read(reader.partitions()[0])])
        first, second = readings
        assert first[0]["published"] == second[0]["published"]
        assert first[0]["age_s"] < second[0]["age_s"]


def test_a_range_begins_and_ends_at_a_time():
    with keeping_broker() as broker:
        assert broker.hub.replay is not None
        broker.hub.replay.clock_ahead_s = ahead_s = 1_000_000.0
        publish(broker, range(1, 6))
        middle_ms = 0
        while (
            not middle_ms or middle_ms <= (broker.hub.replay.missed("#", {})[0][-1].born_s + ahead_s) * 1000
        ):
            time.sleep(0.005)
            middle_ms = int((time.monotonic() + ahead_s) * 1000)
        time.sleep(0.005)
        publish(broker, range(6, 9))
        late = BatchReader(options_for(broker, startingTimestamp=middle_ms), schema_of("id string"))
        assert ids(late, late.partitions()) == ["b1:6", "b1:7", "b1:8"]
        early = BatchReader(options_for(broker, endingTimestamp=middle_ms), schema_of("id string"))
        assert ids(early, early.partitions()) == [f"b1:{number}" for number in range(1, 6)]


def test_a_batch_is_bounded_in_bytes_and_has_one_message_at_least():
    with keeping_broker() as broker:
        for number in range(1, 11):
            publish(broker, range(number, number + 1))
        assert broker.hub.replay is not None
        each = broker.hub.replay.buffer.size_bytes // 10
        reader = stream(broker, maxBytesPerTrigger=3 * each + each // 2)
        limit = reader.getDefaultReadLimit()
        assert limit == ReadMaxBytes(3 * each + each // 2)
        assert reader.latestOffset(at(2), limit) == at(5)
        assert reader.latestOffset(at(2), ReadMaxBytes(1)) == at(3)
        assert reader.latestOffset(at(2), ReadAllAvailable()) == at(10)
        reader.stop()


def test_a_batch_waits_until_it_has_the_least_number_of_messages_or_long_enough():
    with keeping_broker() as broker:
        publish(broker, range(1, 6))
        reader = stream(broker, minOffsetsPerTrigger=4, maxTriggerDelay="1h")
        assert reader.latestOffset(at(2), ReadMaxRows(100)) == at(2)
        assert reader.latestOffset(at(1), ReadMaxRows(100)) == at(5)
        impatient = stream(broker, minOffsetsPerTrigger=4, maxTriggerDelay="0s")
        assert impatient.latestOffset(at(2), ReadMaxRows(100)) == at(5)
        reader.prepareForTriggerAvailableNow()
        assert reader.latestOffset(at(2), ReadMaxRows(100)) == at(5)
        reader.stop()
        impatient.stop()


def test_the_progress_of_a_query_has_its_lag_in_messages():
    with keeping_broker() as broker:
        publish(broker, range(1, 9))
        reader = stream(broker)
        assert reader.latestOffset(at(2), ReadMaxRows(3)) == at(5)
        assert reader.reportLatestOffset() == {"positions": {"b1": 8}, "lag_messages": 3}
        reader.stop()


def test_an_end_is_refused_for_a_stream():
    with keeping_broker() as broker, pytest.raises(SettingError, match=r"ending .* a stream has no end"):
        stream(broker, endingOffsets="latest")
