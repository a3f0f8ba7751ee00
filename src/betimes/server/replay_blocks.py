"""How is quickly found, and sent, what somebody missed among messages that came one after the other?

Each message of a block is read once, when somebody first asks, and laid out by attribute, so that a content
filter is held against all of a block at once; what is found can be written as it is to be sent, likewise at
once, where nothing but its id and its age is to be added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import mqtt5
import numpy as np
from numpy.typing import NDArray

from betimes.matching.topics import topic_matches
from betimes.model.filters import Filter
from betimes.model.user_properties import AGE, ID
from betimes.node.partitioned_buffer import Run
from betimes.qos.contents import CodedColumn, matching_rows
from betimes.server.publications import Publication
from betimes.server.telling import Whole, told_packets

T = TypeVar("T")
Kept = mqtt5.PublishPacket
Flags = NDArray[np.bool_]


class Block:
    """Messages that came one after the other, whatever their origins."""

    __slots__ = ("_laid_out", "_read", "_runs", "_runs_read", "count", "ends", "first")

    def __init__(self, first: int) -> None:
        self.first = first  # how many came before
        self.count = 0
        self.ends: dict[str, int] = {}  # by origin: the highest number
        self._runs: list[tuple[Run[Kept], Sequence[Publication]]] = []
        self._read: list[Publication | None] = []  # None: it was refused
        self._runs_read = 0
        self._laid_out: LaidOut | None = None

    def add(self, run: Run[Kept], whole: Sequence[Publication]) -> None:
        """Take in what came in one go; it may be handed in whole, else it is read when it is asked for."""
        self._runs.append((run, whole))
        self.count += len(run.items)
        self.ends[run.origin] = max(run.last, self.ends.get(run.origin, 0))

    def laid_out(self, origins: dict[str, int]) -> LaidOut:
        """Return what came until now, side by side; `origins` gives each origin its code."""
        if self._laid_out is None or len(self._laid_out.read) < self.count:
            self._read_on()
            self._laid_out = LaidOut(self._read[:], origins)
        return self._laid_out

    def _read_on(self) -> None:
        """Read what was not read yet."""
        for run, whole in self._runs[self._runs_read :]:
            if whole:
                self._read += whole
                continue
            origin, born_s, source = run.origin, run.born_s, run.source
            self._read += [
                None
                if item is None
                else Publication(
                    item, item.topic, born_s=born_s, publisher=source, origin=origin, number=number
                )
                for number, item in enumerate(run.items, run.first)
            ]
        self._runs_read = len(self._runs)


class LaidOut:
    """Messages side by side: what filters, patterns and bounds look at, by attribute."""

    def __init__(self, read: list[Publication | None], origins: dict[str, int]) -> None:
        self.read = read
        self.origin_of = np.array(
            [-1 if each is None else origins.setdefault(each.origin, len(origins)) for each in read],
            dtype=np.int64,
        )
        self.numbers = np.array([0 if each is None else each.number for each in read], dtype=np.int64)
        self._topics, self._topic_of = _coded(["" if each is None else each.topic for each in read])
        attributes = [{} if each is None else each.attributes() for each in read]
        names = dict.fromkeys(name for each in attributes for name in each)
        self._columns = {
            name: CodedColumn(*_coded([each.get(name) for each in attributes])) for name in names
        }
        self._written: _Written | None = None

    def places(self, pattern: str, content_filter: Filter, floors: NDArray[np.int64]) -> Whole:
        """Return where those are that meet pattern and filter and are above their origin's floor."""
        found = (self.origin_of >= 0) & (self.numbers > floors[self.origin_of])
        if not found.any():
            return np.empty(0, np.int64)
        found &= np.array([topic_matches(pattern, topic) for topic in self._topics])[self._topic_of]
        found &= matching_rows(content_filter, self._columns, found.shape)
        return np.flatnonzero(found)

    def written(self) -> _Written:
        """Return them as they were published."""
        if self._written is None:
            self._written = _Written(self.read)
        return self._written


class _Written:
    """Messages as bytes end to end, and what is to be known before they are sent."""

    def __init__(self, read: Sequence[Publication | None]) -> None:
        data = [b"" if each is None else each.packet.write() for each in read]
        self.data = np.frombuffer(bytearray(b"".join(data)), np.uint8)
        self.edges = np.concatenate(([0], np.cumsum([len(each) for each in data], dtype=np.int64)))
        self.born_s = np.array([0.0 if each is None else each.born_s for each in read])
        self.lives_s = np.array([0.0 if each is None else each.deadline_s() for each in read])
        self.are_acknowledged = np.array([each is not None and each.qos > 0 for each in read])
        self.are_plain = np.array([each is not None and _is_plain(each) for each in read])


class Portion:
    """Messages of a block that somebody misses, in the order in which they came."""

    __slots__ = ("_laid_out", "places")

    def __init__(self, laid_out: LaidOut, places: Whole) -> None:
        self._laid_out = laid_out
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    @property
    def origins(self) -> Whole:
        """Return the code of each message's origin."""
        return self._laid_out.origin_of[self.places]

    @property
    def numbers(self) -> Whole:
        """Return the number of each message."""
        return self._laid_out.numbers[self.places]

    def is_plain(self, qos: int) -> bool:
        """Tell whether they go with QoS 0 to somebody who takes so much, with ids and ages and no more."""
        written = self._laid_out.written()
        goes_so = written.are_plain[self.places]
        return bool((goes_so if not qos else goes_so & ~written.are_acknowledged[self.places]).all())

    @property
    def size_bytes(self) -> int:
        """Return how long they are as they were published."""
        edges = self._laid_out.written().edges
        return int((edges[self.places + 1] - edges[self.places]).sum())

    def publications(self) -> list[Publication]:
        """Return them one by one."""
        read = self._laid_out.read
        return [each for place in self.places.tolist() if (each := read[place]) is not None]

    def late(self, now_s: float, bound_s: float) -> Flags:
        """Tell which are too late for somebody who wants them so soon, or by what their publishers said."""
        written = self._laid_out.written()
        lives_s = np.minimum(written.lives_s[self.places], bound_s)
        late: Flags = now_s - written.born_s[self.places] > lives_s
        return late

    def where(self, flags: Flags) -> Portion:
        """Return some of them."""
        return Portion(self._laid_out, self.places[flags])

    def told(self, names: Sequence[str], now_s: float) -> tuple[bytes, int]:
        """Return them end to end, with ids and ages, and the longest one's length; `names` are origins."""
        written, texts = self._laid_out.written(), [each.encode() for each in names]
        ages_ms = np.maximum(np.rint((now_s - written.born_s) * 1000.0), 0.0).astype(np.int64)
        edges = np.concatenate(([0], np.cumsum([len(each) for each in texts], dtype=np.int64)))
        origins = (np.frombuffer(bytearray(b"".join(texts)), np.uint8), edges, self._laid_out.origin_of)
        return told_packets(
            written.data, written.edges, self.places, origins, (self._laid_out.numbers, ages_ms)
        )


def _is_plain(publication: Publication) -> bool:
    """Tell whether a message may go on as it was published, with nothing taken from it."""
    packet = publication.packet
    if packet.message_expiry_interval is not None or packet.topic_alias is not None:
        return False
    return not packet.user_properties or all(name not in (ID, AGE) for name, _ in packet.user_properties)


def _coded(values: Sequence[T]) -> tuple[list[T], NDArray[np.int64]]:
    """Return different values once, and which of them stands at each place. True is not 1."""
    codes: dict[tuple[type, T], int] = {}
    places = [codes.setdefault((type(each), each), len(codes)) for each in values]
    return [value for _, value in codes], np.array(places, dtype=np.int64)
