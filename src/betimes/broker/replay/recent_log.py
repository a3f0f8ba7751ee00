"""The newest messages in the order in which they came, in blocks, from which resuming clients are served.

Many clients that come back ask for the same seconds. The messages of those seconds lie in blocks; a block is
turned into columns once, when a client first asks for it, and topics, filters and ages are then checked for
all its messages at once. What a client misses (a `Selection`) is written as it is to be sent in one pass,
where nothing but the id and the age has to be added. What is further back is looked for message by message,
in the replay buffer itself.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from betimes.broker.delivery.publication import Publication, read_deadline_s
from betimes.matching.columns import CodedColumn, matching_rows
from betimes.matching.topics import topic_matches
from betimes.model.events import Value, number_reading
from betimes.model.filters import Filter
from betimes.model.positions import NOTHING, Have
from betimes.model.user_properties import AGE, ATTRIBUTES_MAX, DEADLINE, ID, OWN
from betimes.mqtt.packet_batch import Kept, PacketBatch
from betimes.mqtt.packet_scan import Flags, Places, walk
from betimes.mqtt.packet_writer import told_packets
from betimes.mqtt.packets import decode_publish, encode_publish
from betimes.replay.buffer import KeptRun

Numbers = NDArray[np.float64]

BLOCK_MESSAGES, BLOCK_BYTES = 1_024, 1_000_000  # at least one of them, but for the last block
BLOCK_MESSAGES_MIN = 256  # of a block with columns: later messages begin a new one, so that its columns stay
BLOCKS_MAX = 128
COLUMNS_MAX = 64  # attributes whose columns are kept for later requests


class MessageColumns:
    """Messages that came one after the other, as columns; refused ones are left out."""

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
        self.lives_s = np.full(len(self), math.inf)  # the deadlines that publishers stated
        self.are_plain = np.ones(len(self), dtype=np.bool_)  # no property has to be removed
        self._values: dict[str, dict[int, Value]] = {}  # by attribute: the value of each pair
        self._apart: dict[int, dict[str, Value]] = {}  # the attributes of messages that were read one by one
        self._columns: dict[str, CodedColumn] = {}
        self._pair_of = self._read_properties()

    def __len__(self) -> int:
        return len(self.run_of)

    def places(
        self, is_wanted: Callable[[str], bool], content_filter: Filter, floors: Places, first: int
    ) -> Places:
        """Return the places of the messages whose topic and content are wanted, above their origin's floor.

        The `first` messages of the block, refused ones included, do not count.
        """
        found: Flags = self.numbers > floors[self.origin_of]
        if first > 0:
            came_before = np.cumsum([0, *[len(run.items) for run in self._runs]])[:-1]
            found &= came_before[self.run_of] + self.places_in >= first
        if not found.any():
            return np.empty(0, np.int64)
        found &= np.array([is_wanted(topic) for topic in self._topics], dtype=np.bool_)[self._topic_of]
        columns = {name: self._column(name) for name in content_filter.attributes()}
        found &= matching_rows(content_filter, columns, found.shape)
        return np.flatnonzero(found)

    def publication(self, place: int) -> Publication:
        """Return one message."""
        packet = decode_publish(self.texts[self.parts.starts[place] : self.parts.ends[place]])
        run = self._runs[self.run_of[place]]
        return Publication(
            packet,
            packet.topic,
            born_s=run.born_s,
            publisher=run.source,
            origin=run.origin,
            number=int(self.numbers[place]),
        )

    def _voids(self) -> Numbers:
        """Return when each message expires (MQTT's message expiry interval)."""
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
        stating = np.flatnonzero(states_one[pair_of])[::-1]  # of several deadlines the first counts
        self.lives_s[owners[stating]] = life_s[pair_of[stating]]
        many = np.bincount(owners, minlength=len(self)) > ATTRIBUTES_MAX
        for place in np.flatnonzero(self.parts.read_by | many).tolist():
            self._apart[place] = self.publication(place).attributes()
        return pair_of

    def _column(self, name: str) -> CodedColumn:
        """Return one attribute of all messages."""
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
    """Return the packets of a run end to end, and their places in the run."""
    items = run.items
    if isinstance(items, PacketBatch):
        return items.data, range(len(items))
    kept = [(place, item) for place, item in enumerate(items) if item is not None]
    return b"".join([encode_publish(item) for _, item in kept]), [place for place, _ in kept]


def _read_pair(pair: bytes) -> tuple[str, str]:
    """Return the name and the value of a user property [2.2.2.2]."""
    middle = 2 + (pair[0] << 8 | pair[1])
    return pair[2:middle].decode(), pair[middle + 2 :].decode()


@dataclass(slots=True, eq=False)
class Block:
    """Messages that came one after the other, whatever their origins."""

    first: int  # how many came before
    count: int = 0
    size_bytes: int = 0
    ends: dict[str, int] = field(default_factory=dict)  # by origin: the highest number
    _runs: list[KeptRun[Kept]] = field(default_factory=list)
    _columns: MessageColumns | None = None
    _columns_count: int = 0

    def add(self, run: KeptRun[Kept]) -> None:
        """Add a run of messages."""
        self._runs.append(run)
        self.count += len(run.items)
        self.size_bytes += run.size_bytes
        self.ends[run.origin] = max(run.last, self.ends.get(run.origin, 0))

    @property
    def has_columns(self) -> bool:
        """Tell whether the columns hold all messages of the block."""
        return self._columns is not None and self._columns_count == self.count

    def columns(self, origins: dict[str, int]) -> MessageColumns:
        """Return the messages of the block as columns; `origins` gives each origin its code."""
        if self._columns is None or not self.has_columns:
            self._columns, self._columns_count = MessageColumns(self._runs[:], origins), self.count
        return self._columns


@dataclass(slots=True, eq=False)
class Selection:
    """Messages of a block that a client misses, in the order in which they came."""

    _columns: MessageColumns
    places: Places

    def __len__(self) -> int:
        return len(self.places)

    @property
    def origins(self) -> Places:
        """Return the code of each message's origin."""
        return self._columns.origin_of[self.places]

    @property
    def numbers(self) -> Places:
        """Return the number of each message."""
        return self._columns.numbers[self.places]

    def is_plain(self, qos: int) -> bool:
        """Tell whether all go with QoS 0 to a subscriber of this QoS, with ids and ages and nothing else."""
        goes_so = self._columns.are_plain[self.places]
        if qos:
            goes_so = goes_so & (self._columns.data[self._columns.parts.starts[self.places]] & 6 == 0)
        return bool(goes_so.all())

    @property
    def size_bytes(self) -> int:
        """Return the size of the messages as they were published."""
        parts = self._columns.parts
        return int((parts.ends[self.places] - parts.starts[self.places]).sum())

    def publications(self) -> list[Publication]:
        """Return the messages one by one."""
        return [self._columns.publication(place) for place in self.places.tolist()]

    def void(self, now_s: float) -> Flags:
        """Tell which have expired."""
        ended: Flags = now_s >= self._columns.void_at_s[self.places]
        return ended

    def late(self, now_s: float, bound_s: float) -> Flags:
        """Tell which are too late for a subscriber's bound, or by their publishers' deadlines."""
        lives_s = np.minimum(self._columns.lives_s[self.places], bound_s)
        late: Flags = now_s - self._columns.born_s[self.places] > lives_s
        return late | self.void(now_s)

    def where(self, flags: Flags) -> Selection:
        """Return some of the messages."""
        return Selection(self._columns, self.places[flags])

    def split(self, newest: int) -> tuple[Selection, Selection]:
        """Return the newest so many messages, and the others."""
        edge = max(len(self) - newest, 0)
        return Selection(self._columns, self.places[edge:]), Selection(self._columns, self.places[:edge])

    def told(self, names: Sequence[str], now_s: float) -> tuple[bytes, int]:
        """Return the packets end to end, with ids and ages, and the longest size; `names` are origins."""
        columns, texts = self._columns, [each.encode() for each in names]
        ages_ms = np.maximum(np.rint((now_s - columns.born_s) * 1000.0), 0.0).astype(np.int64)
        # What is left of it: a message that waited is not young again [MQTT-3.3.2-6].
        left_s = np.maximum(np.ceil(columns.void_at_s - now_s), 1.0)
        left = np.where(left_s == math.inf, 0.0, left_s).astype(np.int64)
        edges = np.cumsum([0, *[len(each) for each in texts]])
        origins = (np.frombuffer(bytearray(b"".join(texts)), np.uint8), edges, columns.origin_of)
        facts = (columns.numbers, ages_ms, left)
        return told_packets(columns.data, columns.parts, self.places, origins, facts)


class RecentLog:
    """The last messages of a buffer that overwrites them in the order in which they came."""

    def __init__(self) -> None:
        self._blocks: deque[Block] = deque([Block(0)])
        self._passed: dict[str, int] = {}  # by origin: the highest number that is too far back
        self._origins: dict[str, int] = {}  # the code of each origin

    def add(self, run: KeptRun[Kept]) -> None:
        """Add what the buffer has just kept."""
        last = self._blocks[-1]
        is_done = last.has_columns and last.count >= BLOCK_MESSAGES_MIN
        if is_done or last.count >= BLOCK_MESSAGES or last.size_bytes >= BLOCK_BYTES:
            last = Block(last.first + last.count)
            self._blocks.append(last)
            if len(self._blocks) > BLOCKS_MAX:
                for origin, number in self._blocks.popleft().ends.items():
                    self._passed[origin] = max(number, self._passed.get(origin, 0))
        last.add(run)

    @property
    def origins(self) -> list[str]:
        """Return the origin of each code."""
        return list(self._origins)

    def reaches(self, have: Mapping[str, Have]) -> bool:
        """Tell whether the log reaches back to all that a client does not have."""
        return all(have.get(origin, NOTHING).floor >= passed for origin, passed in self._passed.items())

    def missed(
        self, pattern: str, content_filter: Filter, have: Mapping[str, Have], overwritten: int
    ) -> list[Selection]:
        """Return what a client wants and does not have, but for the first so many, which are overwritten."""
        is_wanted = partial(topic_matches, pattern)
        found = [
            self.select(block, is_wanted, content_filter, have, overwritten - block.first)
            for block in self.blocks(have, overwritten)
        ]
        return [each for each in found if len(each)]

    def blocks(self, have: Mapping[str, Have], overwritten: int) -> list[Block]:
        """Return the blocks with messages that a client may lack; the first so many are overwritten."""
        return [
            block
            for block in self._blocks
            if block.first + block.count > overwritten
            and any(have.get(origin, NOTHING).floor < end for origin, end in block.ends.items())
        ]

    def is_contiguous(self, block: Block) -> bool:
        """Tell whether the log still holds all that came behind a block."""
        return self._blocks[0].first <= block.first + block.count

    def select(
        self,
        block: Block,
        is_wanted: Callable[[str], bool],
        content_filter: Filter,
        have: Mapping[str, Have],
        first: int,
    ) -> Selection:
        """Return what a client wants and does not have of a block, but for the first so many."""
        columns = block.columns(self._origins)
        floors = np.array([have.get(origin, NOTHING).floor for origin in self._origins] or [0])
        selection = Selection(columns, columns.places(is_wanted, content_filter, floors, first))
        if any(each.above for each in have.values()):
            selection = selection.where(self._not_had(selection, have))
        return selection

    def _not_had(self, selection: Selection, have: Mapping[str, Have]) -> Flags:
        """Tell which messages are not among those that a client has above the floor."""
        names = self.origins
        codes, numbers = selection.origins.tolist(), selection.numbers.tolist()
        pairs = zip(codes, numbers, strict=True)
        return np.array([number not in have.get(names[code], NOTHING) for code, number in pairs], dtype=bool)


def are_in_order(selections: Sequence[Selection]) -> bool:
    """Tell whether no message was overtaken by another of its origin."""
    if not selections:
        return True
    origins = np.concatenate([each.origins for each in selections])
    numbers = np.concatenate([each.numbers for each in selections])
    order = np.argsort(origins, kind="stable")
    origins, numbers = origins[order], numbers[order]
    return bool(((numbers[1:] > numbers[:-1]) | (origins[1:] != origins[:-1])).all())
