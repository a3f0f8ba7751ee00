"""Are packets that were kept as bytes the ones that came?"""

from __future__ import annotations

import mqtt5

from betimes.mqtt.mqtt311 import written
from betimes.mqtt.packet_batch import PacketBatch

PACKETS = [mqtt5.PublishPacket("t", b"%d" % number) for number in range(3)]


def test_packets_of_version_5_are_the_bytes_they_came_in():
    data = b"".join(each.write() for each in PACKETS) + b"\x30"
    kept = PacketBatch(data, 3)
    assert [each.payload for each in kept] == [b"0", b"1", b"2"]
    assert kept.data == data
    assert kept[1].payload == b"1"
    assert len(kept) == 3
    assert kept.count(None) == 0


def test_packets_of_version_3_1_1_become_newer_ones():
    kept = PacketBatch(b"".join(map(written, PACKETS)), 3, version=4)
    assert kept.data == b"".join(each.write() for each in PACKETS)
