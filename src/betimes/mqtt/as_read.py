"""How are packets kept for long? As the bytes they came in: one object, whatever is in it.

Thousands of small objects that live long cost more than all else that keeping takes, in memory that is not at
hand any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import mqtt5

from betimes.broker.delivery.publication import Publication
from betimes.mqtt import mqtt311 as mqtt3
from betimes.mqtt.validation import number_at
from betimes.replay.buffer import Found

Kept = mqtt5.PublishPacket


class AsRead(Sequence[Kept]):
    """Packets in the bytes they came in, read again when somebody asks for them."""

    __slots__ = ("_count", "_data", "_version")

    def __init__(self, data: bytes, count: int, version: int = 5) -> None:
        self._data = data  # there may be the beginning of another packet behind them
        self._count = count
        self._version = version  # of MQTT

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Kept]:
        view, at = memoryview(self._data), 0
        for _ in range(self._count):
            if self._version == 5:
                packet, size = mqtt5.read(view[at:])
            else:
                length, body = number_at(self._data, at + 1, len(self._data))
                size = body + length - at
                newer = mqtt3.as_version_5(self._data[at], self._data[body : at + size])
                packet = mqtt5.read(memoryview(newer))[0]
            assert isinstance(packet, Kept), "only publications are kept"
            at += size
            yield packet

    @overload
    def __getitem__(self, place: int) -> Kept: ...

    @overload
    def __getitem__(self, place: slice) -> list[Kept]: ...

    def __getitem__(self, place: int | slice) -> Kept | list[Kept]:
        return list(self)[place]

    def count(self, value: object) -> int:
        """Return how often something is among them; None, that is, a refused one, never is."""
        return sum(each == value for each in self) if value is not None else 0

    @property
    def data(self) -> bytes:
        """Return them end to end as packets of MQTT 5; the beginning of another one may be behind them."""
        return self._data if self._version == 5 else b"".join([each.write() for each in self])


def publication_of(found: Found[Kept]) -> Publication:
    """Return a kept packet as it was published."""
    return Publication(
        found.item,
        found.item.topic,
        born_s=found.born_s,
        publisher=found.source,
        origin=found.origin,
        number=found.number,
    )
