"""Is all that is published in bulk taken in once, whatever happens to the connection?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.client.blocking.test_ranges import address_of, keeping_broker
from tests.interop.brokers import Broker, running_broker

from betimes.client.blocking.connection import DirectConnection
from betimes.client.blocking.publish import BulkPublisher
from betimes.client.errors import PublicationRefusedError, UnreachableError
from betimes.model.errors import SettingError

pytestmark = pytest.mark.live


def events(numbers: range, topic: str = "t") -> list[mqtt5.PublishPacket]:
    return [
        mqtt5.PublishPacket(topic, str(number).encode(), user_properties=[("$key", str(number))])
        for number in numbers
    ]


def kept(broker: Broker) -> list[int]:
    assert broker.hub.replay is not None
    publications, _ = broker.hub.replay.missed("#", {})
    return [int(each.packet.payload) for each in publications]


def test_all_is_there_when_it_returns_and_in_order():
    with keeping_broker(receive_max=70) as broker:
        publisher = BulkPublisher([address_of(broker)], in_flight_max=500)
        publisher.publish(events(range(3_000)))
        assert publisher.acknowledged == 3_000
        assert kept(broker) == list(range(3_000))
        publisher.publish(events(range(2_990, 3_010)))
        publisher.close()
        assert kept(broker) == list(range(3_010))


class _Cutting(DirectConnection):
    """Loses its connection once, between what was sent and what is answered."""

    cuts = 1

    def receive(self) -> list[object]:
        if _Cutting.cuts and self.protocol.receive_max < 65_535:  # it has logged in
            _Cutting.cuts -= 1
            self._transport.close()
        return super().receive()


def test_what_was_under_way_when_the_connection_broke_counts_once(monkeypatch):
    monkeypatch.setattr("betimes.client.blocking.connection.DirectConnection", _Cutting)
    with keeping_broker(receive_max=70) as broker:
        publisher = BulkPublisher([address_of(broker)], patience_s=10.0)
        publisher.publish(events(range(200)))
        publisher.close()
        assert not _Cutting.cuts
        assert sorted(kept(broker)) == list(range(200))


def test_what_a_broker_does_not_take_is_an_error():
    with keeping_broker(packet_bytes_max=2_000) as broker:
        publisher = BulkPublisher([address_of(broker)])
        with pytest.raises(PublicationRefusedError, match=r"\$own"):
            publisher.publish(events(range(1), "$own"))
        publisher.close()
        publisher = BulkPublisher([address_of(broker)])
        with pytest.raises(SettingError, match="2000 bytes at most"):
            publisher.publish([mqtt5.PublishPacket("t", bytes(3_000))])
        publisher.close()


def test_a_broker_that_is_away_is_an_error_after_a_while():
    with running_broker() as broker:
        nobody = address_of(broker)
    with pytest.raises(UnreachableError):
        BulkPublisher([nobody], patience_s=0.2).publish(events(range(1)))
