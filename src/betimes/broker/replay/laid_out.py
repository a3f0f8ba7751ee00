"""How do many kept messages lie so that a filter is held against all of them at once?

Side by side: for each attribute one column. Most are never read one by one: their bytes are walked once, and
what stands in many of them is read once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mqtt5
import numpy as np
from numpy.typing import NDArray

from betimes.broker.delivery.publication import Publication, read_deadline_s
from betimes.matching.columns import CodedColumn, matching_rows
from betimes.matching.topics import topic_matches
from betimes.model.events import Value, number_reading
from betimes.model.filters import Filter
from betimes.model.user_properties import AGE, ATTRIBUTES_MAX, DEADLINE, ID, OWN
from betimes.mqtt.packet_batch import Kept, PacketBatch
from betimes.mqtt.packet_scan import Flags, Places, walk
from betimes.replay.buffer import KeptRun

Numbers = NDArray[np.float64]

COLUMNS_MAX = 64  # attributes that are laid out for those who ask next


class MessageColumns:
    """Messages that came one after the other; those that were refused are left out."""

    def __init__(self, runs: Sequence[KeptRun[Kept]], origins: dict[str, int]) -> None:
        pieces = [_packets_of(run) for run in runs]
        self.texts = b"".join(data for data, _ in pieces)
        self.data = np.frombuffer(self.texts, np.uint8)  # the same, for kernels
        counts = np.array([len(places) for _, places in pieces], dtype=np.int64)
        run_starts = np.cumsum([0, *[len(data) for data, _ in pieces]])[:-1]
        self.parts = walk(self.data, run_starts, counts)
        self.run_of = np.repeat(np.arange(len(runs)), counts)
        self.places_in = np.array([each for _, places in pieces for each in places], dtype=np.int64)
        self.numbers = np.array([run.first for run in runs], dtype=np.int64)[self.run_of] + self.places_in
        codes = [origins.setdefault(run.origin, len(origins)) for run in runs]
        self.origin_of = np.array(codes, dtype=np.int64)[self.run_of]
        self.born_s = np.array([run.born_s for run in runs], dtype=np.float64)[self.run_of]
        self._runs = runs
        self.void_at_s = self._voids()
        spans = zip(self.parts.topics.tolist(), self.parts.topic_ends.tolist(), strict=True)
        topics, self._topic_of = coded([self.texts[start:end] for start, end in spans])
        self._topics = [each.decode() for each in topics]
        self.lives_s = np.full(len(self), math.inf)  # until what their publishers said
        self.are_plain = np.ones(len(self), dtype=np.bool_)  # nothing is to be taken from them
        self._values: dict[str, dict[int, Value]] = {}  # by attribute: what each of these pairs says
        self._apart: dict[int, dict[str, Value]] = {}  # what is in those that were read one by one
        self._columns: dict[str, CodedColumn] = {}
        self._pair_of = self._read_properties()

    def __len__(self) -> int:
        return len(self.run_of)

    def places(self, pattern: str, content_filter: Filter, floors: Places, first: int) -> Places:
        """Return where those are that meet pattern and filter and are above their origin's floor.

        Of what came, the first so many do not count, refused ones included.
        """
        found: Flags = self.numbers > floors[self.origin_of]
        if first > 0:
            found &= self._came() >= first
        if not found.any():
            return np.empty(0, np.int64)
        found &= np.array([topic_matches(pattern, topic) for topic in self._topics])[self._topic_of]
        columns = {name: self._column(name) for name in content_filter.attributes()}
        found &= matching_rows(content_filter, columns, found.shape)
        return np.flatnonzero(found)

    def publication(self, place: int) -> Publication:
        """Return one of them."""
        packet, _ = mqtt5.read(memoryview(self.texts)[self.parts.starts[place] : self.parts.ends[place]])
        assert isinstance(packet, Kept), "only publications are kept"
        run = self._runs[self.run_of[place]]
        return Publication(
            packet,
            packet.topic,
            born_s=run.born_s,
            publisher=run.source,
            origin=run.origin,
            number=int(self.numbers[place]),
        )

    def _came(self) -> Places:
        """Return how many came before each of them."""
        before = np.cumsum([0, *[len(run.items) for run in self._runs]])[:-1]
        places: Places = before[self.run_of] + self.places_in
        return places

    def _voids(self) -> Numbers:
        """Return when the life of each message ends, as MQTT has it."""
        at = self.parts.expiries
        void_at_s = np.full(len(self), math.inf)
        (ending,) = np.nonzero(at >= 0)
        if len(ending):
            digits = self.data[at[ending, np.newaxis] + np.arange(4)]
            void_at_s[ending] = self.born_s[ending] + digits @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
        return void_at_s

    def _read_properties(self) -> Places:
        """Read each different user property once; return which of them stands at each place."""
        owners = self.parts.owners
        spans = zip(self.parts.user_starts.tolist(), self.parts.user_ends.tolist(), strict=True)
        pairs, pair_of = coded([self.texts[start:end] for start, end in spans])
        life_s, taken_off = np.full(len(pairs), math.inf), np.zeros(len(pairs), dtype=np.bool_)
        states_one = taken_off.copy()
        for code, pair in enumerate(pairs):
            name, text = _read_pair(pair)
            if not name.startswith(OWN):
                number = number_reading(text)
                self._values.setdefault(name, {})[code] = text if number is None else number
            elif name == DEADLINE:
                life_s[code], states_one[code] = read_deadline_s(text), True
            else:
                taken_off[code] = name in (ID, AGE)
        self.are_plain[owners[taken_off[pair_of]]] = False
        stating = np.flatnonzero(states_one[pair_of])[::-1]  # who states several means the first
        self.lives_s[owners[stating]] = life_s[pair_of[stating]]
        many = np.bincount(owners, minlength=len(self)) > ATTRIBUTES_MAX
        for place in np.flatnonzero(self.parts.read_by | many).tolist():
            self._apart[place] = self.publication(place).attributes()
        return pair_of

    def _column(self, name: str) -> CodedColumn:
        """Return what all of them say of one attribute."""
        column = self._columns.get(name)
        if column is not None:
            return column
        values: list[Value] = [None]
        said = self._values.get(name, {})
        code_of = np.zeros(int(self._pair_of.max(initial=-1)) + 1, dtype=np.int64)
        for code, value in said.items():
            code_of[code] = len(values)
            values.append(value)
        codes = np.zeros(len(self), dtype=np.int64)
        written = code_of[self._pair_of]
        codes[self.parts.owners[written > 0]] = written[written > 0]
        for place, attributes in self._apart.items():
            codes[place] = len(values)
            values.append(attributes.get(name))
        column = CodedColumn(values, codes)
        if len(self._columns) < COLUMNS_MAX:
            self._columns[name] = column
        return column


def coded(values: Sequence[bytes]) -> tuple[list[bytes], Places]:
    """Return different values once, and which of them stands at each place."""
    codes: dict[bytes, int] = {}
    places = [codes.setdefault(each, len(codes)) for each in values]
    return list(codes), np.array(places, dtype=np.int64)


def _packets_of(run: KeptRun[Kept]) -> tuple[bytes, Sequence[int]]:
    """Return the packets of a run end to end, and which of its numbers they have."""
    items = run.items
    if isinstance(items, PacketBatch):
        return items.data, range(len(items))
    kept = [(place, item) for place, item in enumerate(items) if item is not None]
    return b"".join([item.write() for _, item in kept]), [place for place, _ in kept]


def _read_pair(pair: bytes) -> tuple[str, str]:
    """Return the name and the value of a user property [2.2.2.2]."""
    middle = 2 + (pair[0] << 8 | pair[1])
    return pair[2:middle].decode(), pair[middle + 2 :].decode()
