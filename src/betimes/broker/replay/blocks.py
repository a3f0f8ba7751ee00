"""What does somebody miss among messages that came one after the other, and how does it go out?

Many who come back ask for the same seconds: what came in them lies in blocks, each laid out once, when
somebody first asks. What is found can be written as it is to be sent, all at once, where nothing but its id
and its age is to be added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from betimes.broker.delivery.publication import Publication
from betimes.broker.replay.laid_out import MessageColumns
from betimes.mqtt.packet_batch import Kept
from betimes.mqtt.packet_scan import Flags, Places
from betimes.mqtt.packet_writer import told_packets
from betimes.replay.buffer import KeptRun


class Block:
    """Messages that came one after the other, whatever their origins."""

    __slots__ = ("_laid_out", "_laid_out_count", "_runs", "count", "ends", "first", "size_bytes")

    def __init__(self, first: int) -> None:
        self.first = first  # how many came before
        self.count = 0
        self.size_bytes = 0
        self.ends: dict[str, int] = {}  # by origin: the highest number
        self._runs: list[KeptRun[Kept]] = []
        self._laid_out: MessageColumns | None = None
        self._laid_out_count = 0

    def add(self, run: KeptRun[Kept]) -> None:
        """Take in what came in one go."""
        self._runs.append(run)
        self.count += len(run.items)
        self.size_bytes += run.size_bytes
        self.ends[run.origin] = max(run.last, self.ends.get(run.origin, 0))

    @property
    def is_laid_out(self) -> bool:
        """Tell whether somebody asked for all that came until now."""
        return self._laid_out is not None and self._laid_out_count == self.count

    def laid_out(self, origins: dict[str, int]) -> MessageColumns:
        """Return what came until now, side by side; `origins` gives each origin its code."""
        if self._laid_out is None or not self.is_laid_out:
            self._laid_out, self._laid_out_count = MessageColumns(self._runs[:], origins), self.count
        return self._laid_out


class Selection:
    """Messages of a block that somebody misses, in the order in which they came."""

    __slots__ = ("_laid_out", "places")

    def __init__(self, laid_out: MessageColumns, places: Places) -> None:
        self._laid_out = laid_out
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    @property
    def origins(self) -> Places:
        """Return the code of each message's origin."""
        return self._laid_out.origin_of[self.places]

    @property
    def numbers(self) -> Places:
        """Return the number of each message."""
        return self._laid_out.numbers[self.places]

    def is_plain(self, qos: int) -> bool:
        """Tell whether they go with QoS 0 to somebody who takes so much, with ids and ages and no more."""
        goes_so = self._laid_out.are_plain[self.places]
        if qos:
            goes_so = goes_so & (self._laid_out.data[self._laid_out.parts.starts[self.places]] & 6 == 0)
        return bool(goes_so.all())

    @property
    def size_bytes(self) -> int:
        """Return how long they are as they were published."""
        parts = self._laid_out.parts
        return int((parts.ends[self.places] - parts.starts[self.places]).sum())

    def publications(self) -> list[Publication]:
        """Return them one by one."""
        return [self._laid_out.publication(place) for place in self.places.tolist()]

    def void(self, now_s: float) -> Flags:
        """Tell which have ended, whoever would still take them."""
        ended: Flags = now_s >= self._laid_out.void_at_s[self.places]
        return ended

    def late(self, now_s: float, bound_s: float) -> Flags:
        """Tell which are too late for somebody who wants them so soon, or by what their publishers said."""
        lives_s = np.minimum(self._laid_out.lives_s[self.places], bound_s)
        late: Flags = now_s - self._laid_out.born_s[self.places] > lives_s
        return late | self.void(now_s)

    def where(self, flags: Flags) -> Selection:
        """Return some of them."""
        return Selection(self._laid_out, self.places[flags])

    def told(self, names: Sequence[str], now_s: float) -> tuple[bytes, int]:
        """Return them end to end, with ids and ages, and the longest one's length; `names` are origins."""
        laid_out, texts = self._laid_out, [each.encode() for each in names]
        ages_ms = np.maximum(np.rint((now_s - laid_out.born_s) * 1000.0), 0.0).astype(np.int64)
        # What is left of it: a message that waited is not young again [MQTT-3.3.2-6].
        left_s = np.maximum(np.ceil(laid_out.void_at_s - now_s), 1.0)
        left = np.where(left_s == math.inf, 0.0, left_s).astype(np.int64)
        edges = np.cumsum([0, *[len(each) for each in texts]])
        origins = (np.frombuffer(bytearray(b"".join(texts)), np.uint8), edges, laid_out.origin_of)
        facts = (laid_out.numbers, ages_ms, left)
        return told_packets(laid_out.data, laid_out.parts, self.places, origins, facts)
