"""Packet batches: consecutive PUBLISH packets as the received bytes, handled without decoding each of them.

Publishers repeat themselves: the same packet comes again and again, but for its payload. The codec bundles
such packets; if all subscribers get them unchanged, the broker forwards a whole batch as one piece of bytes.
The replay buffer keeps batches too: one long-lived object costs less memory than thousands of small ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import mqtt5

from betimes.mqtt import mqtt311
from betimes.mqtt.packets import OVERHEAD_BYTES, decode_publish
from betimes.mqtt.validation import number_at

Kept = mqtt5.PublishPacket


class PacketBatch(Sequence[Kept]):
    """Consecutive PUBLISH packets, decoded on demand.

    The codec states where each packet begins (`edges`, the end of the last included) and the topic that all
    of them have: QoS 0, no properties, not retained. Without edges the batch may hold any PUBLISH packets,
    and the beginning of another packet may stand behind them.
    """

    __slots__ = ("_count", "_data", "_edges", "topic", "version")

    def __init__(
        self, data: bytes, count: int, version: int = 5, edges: list[int] | None = None, topic: str = ""
    ) -> None:
        self._data = data
        self._count = count
        self._edges = edges
        self.version = version  # of MQTT
        self.topic = topic

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """Return about how much memory the packets need while they wait."""
        edges = self._all_edges()
        return edges[-1] - edges[0] + 2 * OVERHEAD_BYTES * self._count

    @property
    def packet_bytes_max(self) -> int:
        """Return the size of the largest packet."""
        edges = self._all_edges()
        return max(map(int.__sub__, edges[1:], edges))

    @property
    def data(self) -> bytes:
        """Return the packets end to end in MQTT 5; the beginning of another one may be behind them."""
        return self._data if self.version == 5 else b"".join([each.write() for each in self])

    def piece(self, first: int, stop: int) -> bytes:
        """Return the bytes of these packets, unchanged."""
        edges = self._all_edges()
        return self._data[edges[first] : edges[stop]]

    def packets(self, first: int, stop: int) -> Iterator[Kept]:
        """Decode these packets."""
        edges = self._all_edges()
        for start, end in zip(edges[first:stop], edges[first + 1 : stop + 1], strict=True):
            data = self._data[start:end]
            if self.version == 4:
                _, body = number_at(data, 1, len(data))
                data = mqtt311.as_version_5(data[0], data[body:])
            if not self.topic:  # the packets may have properties
                yield decode_publish(data)
                continue
            packet = mqtt5.read(memoryview(data))[0]
            assert isinstance(packet, Kept), "a batch holds PUBLISH packets only"
            yield packet

    def __iter__(self) -> Iterator[Kept]:
        return self.packets(0, self._count)

    @overload
    def __getitem__(self, place: int) -> Kept: ...

    @overload
    def __getitem__(self, place: slice) -> list[Kept]: ...

    def __getitem__(self, place: int | slice) -> Kept | list[Kept]:
        return list(self)[place]

    def count(self, value: object) -> int:
        """Return how often a packet is in the batch; None, which stands for a refused one, never is."""
        return sum(each == value for each in self) if value is not None else 0

    def _all_edges(self) -> list[int]:
        """Return where each packet begins, and where the last one ends."""
        if self._edges is None:
            edges, data, size = [0], self._data, len(self._data)
            for _ in range(self._count):
                length, body = number_at(data, edges[-1] + 1, size)
                edges.append(body + length)
            self._edges = edges
        return self._edges
