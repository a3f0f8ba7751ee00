"""Does a program read between two positions all that it wants, once, and hear what is missing there?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import mqtt5
import pytest
from tests.interop.brokers import HOST, Broker, running_broker

from betimes.client.addresses import Address
from betimes.client.blocking.connection import DirectConnection
from betimes.client.blocking.ranges import RangeReader, RangeRequest
from betimes.client.errors import SubscriptionRefusedError, UnreachableError
from betimes.model.buffer_settings import BufferSettings, PartitionTerms

pytestmark = pytest.mark.live
ALL = RangeRequest(topic="#")


@contextmanager
def keeping_broker(messages_max: int = 1_000_000, **limits) -> Iterator[Broker]:
    buffer = BufferSettings(partitions=(PartitionTerms(messages_max=messages_max),))
    with running_broker(buffer=buffer, **limits) as broker:
        yield broker


def publish(broker: Broker, numbers: range, topic: str = "t") -> None:
    """Publish, and return when the broker has everything."""
    with closing(DirectConnection(address_of(broker))) as line:
        packets = [
            mqtt5.PublishPacket(topic, str(number).encode(), user_properties=[("speed", str(number))])
            for number in numbers
        ]
        line.send(*packets, mqtt5.PingReqPacket())
        line.receive()


def address_of(broker: Broker) -> Address:
    return Address(host=HOST, port=broker.port)


def payloads(
    reader: RangeReader, wanted: RangeRequest, after: dict[str, int], until: dict[str, int]
) -> list[int]:
    return [int(each.payload) for part in reader.read(wanted, after, until) for each in part.packets]


def test_a_range_is_read_whole_however_long_and_however_often():
    with keeping_broker() as broker, RangeReader([address_of(broker)]) as reader:
        publish(broker, range(1, 10_001))
        plan = reader.plan(ALL, {}, most=9_000)
        assert plan.positions == {"b1": 9_000}
        assert (plan.kept, plan.lost, plan.is_whole) == (9_000, 0, True)
        for _ in range(2):
            assert payloads(reader, ALL, {"b1": 1_000}, plan.positions) == list(range(1_001, 9_001))
        fast = RangeRequest(topic="t", filter="speed > 8990")
        assert payloads(reader, fast, {}, plan.positions) == list(range(8_991, 9_001))
        assert payloads(reader, RangeRequest(topic="u"), {}, plan.positions) == []


def test_parts_of_a_small_queue_are_the_whole():
    with keeping_broker(queue_bytes_max=20_000) as broker, RangeReader([address_of(broker)]) as reader:
        publish(broker, range(1, 501))
        assert payloads(reader, ALL, {}, {"b1": 500}) == list(range(1, 501))


def test_what_is_overwritten_is_told():
    with keeping_broker(100) as broker, RangeReader([address_of(broker)]) as reader:
        for start in range(1, 1_001, 10):
            publish(broker, range(start, start + 10))
        assert reader.plan(ALL, {"b1": 800}).lost == 100
        parts = list(reader.read(ALL, {"b1": 800}, {"b1": 950}))
        assert [(gap.first, gap.last, gap.at_most) for part in parts for gap in part.gaps] == [
            (801, 900, 100)
        ]
        assert [int(each.payload) for part in parts for each in part.packets] == list(range(901, 951))


def test_a_plan_can_end_where_another_ended():
    with keeping_broker() as broker, RangeReader([address_of(broker)]) as reader:
        publish(broker, range(1, 101))
        plan = reader.plan(ALL, {"b1": 10}, until={"b1": 60})
        assert (plan.positions, plan.kept) == ({"b1": 60}, 50)
        assert reader.plan(ALL, {"b1": 100}).positions == {"b1": 100}


def test_a_connection_that_was_cut_in_between_is_opened_again():
    with keeping_broker() as broker, RangeReader([address_of(broker)]) as reader:
        publish(broker, range(1, 4))
        reader.plan(ALL, {})
        assert reader._line is not None
        reader._line._transport.close()
        assert payloads(reader, ALL, {}, {"b1": 3}) == [1, 2, 3]


def test_the_next_broker_is_asked_where_one_is_down():
    with running_broker() as gone:
        nobody = address_of(gone)
    with keeping_broker() as broker:
        publish(broker, range(1, 4))
        with RangeReader([nobody, address_of(broker)], patience_s=5.0) as reader:
            assert reader.plan(ALL, {}).positions == {"b1": 3}
    with RangeReader([nobody], patience_s=0.3) as reader, pytest.raises(UnreachableError):
        reader.plan(ALL, {})


def test_what_a_broker_refuses_is_told_in_its_words():
    with keeping_broker() as broker, RangeReader([address_of(broker)]) as reader:
        with pytest.raises(SubscriptionRefusedError, match="from the future"):
            reader.plan(ALL, {"b1": 5})
        with pytest.raises(SubscriptionRefusedError, match="no broker called b9"):
            list(reader.read(ALL, {}, {"b9": 5}))


def test_a_broker_that_keeps_nothing_says_so():
    with (
        running_broker() as broker,
        RangeReader([address_of(broker)]) as reader,
        pytest.raises(SubscriptionRefusedError, match="keeps nothing"),
    ):
        reader.plan(ALL, {})
