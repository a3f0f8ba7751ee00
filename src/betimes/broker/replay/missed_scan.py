"""Looking through what is kept for what a client missed, some messages at a time.

The scan holds on to all that was kept when it began, so that nothing of it is lost while other clients have
their turns. `finish` is the last step, in which nothing else happens: it looks at what came meanwhile.

Where the log of the newest messages reaches back far enough, its blocks are looked at; else the runs of the
buffer, message by message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from betimes.broker.delivery.publication import Publication, publication_of
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.broker.replay.recent_log import Block, RecentLog, Selection
from betimes.matching.topics import TopicTree
from betimes.model.filters import EVERYTHING, Filter
from betimes.model.positions import NOTHING, Gap, Have
from betimes.mqtt.packet_batch import Kept, PacketBatch
from betimes.mqtt.packets import OVERHEAD_BYTES
from betimes.replay.buffer import NEVER_CAME, NOT_REMEMBERED, FoundMessage, KeptRun

LAST_STEP_MESSAGES = 500  # that came during the scan may be looked at in its last step
ROUNDS_MAX = 20  # of looking at what came meanwhile; then the last step looks at all that is left
PIECE_MESSAGES = 250  # of a run, between two turns
NO_ROOM = "no room"

Accept = Callable[[Publication], bool]


class MissedScan:
    """What a client missed of some topics, as far as there is room for it, the newest first."""

    def __init__(
        self,
        replay: ReplayBuffer,
        patterns: Sequence[str],
        content_filter: Filter,
        have: Mapping[str, Have],
        accept: Accept,
        room_bytes: int,
    ) -> None:
        self.publications: list[Publication] = []  # what was found, in no order
        self.selections: list[Selection] = []  # what was found in blocks and was not read yet, in order
        self._replay = replay
        self._patterns = patterns
        self._filter = content_filter
        self._have = have
        self._accept = accept
        self._room_bytes = room_bytes
        self._topics: TopicTree[str] = TopicTree()
        for pattern in patterns:
            self._topics.add(pattern, pattern)
        self._log: RecentLog | None = None
        self._looked_at: dict[Block, int] = {}  # how many messages of each block
        self._runs: dict[int, KeptRun[Kept]] = {}  # that were gathered, by identity
        self._unsent: dict[str, tuple[int, int, int]] = {}  # by origin: first, last, count
        self._overwritten = 0
        self._gaps: list[Gap] = []
        self._since: dict[str, Have] = {}  # the highest numbers when the scan began
        self._begin()

    def _begin(self) -> None:
        """Hold on to all that is kept now."""
        replay = self._replay
        self._log = replay.log_for(self._have)
        self._overwritten = replay.buffer.overwritten
        self._gaps = self._missing(self._have)
        self._since = {origin: Have(floor=number) for origin, number in replay.buffer.highest().items()}
        self._settled = {origin: Have(floor=number) for origin, number in replay.buffer.settled().items()}
        self._blocks: list[tuple[Block, int]] = []  # still to be looked at, with the count of messages
        self._left: list[KeptRun[Kept]] = []
        self._gather(self._have)

    @property
    def reads_blocks(self) -> bool:
        """Tell whether what is found are selections of blocks."""
        return self._log is not None

    def steps(self) -> Iterator[int]:
        """Look through all that is kept; yield the units of work that this took."""
        for _ in range(ROUNDS_MAX):
            is_small = self._count <= LAST_STEP_MESSAGES
            if is_small:
                return
            yield from self._look()
            self._gather_new()

    def finish(self) -> list[Gap]:
        """Look at what came during the scan, in one step; return all that is missing."""
        self._gather_new()
        for _ in self._look():
            pass
        if self._replay.buffer.highest() == {origin: had.floor for origin, had in self._since.items()}:
            return self._gaps
        not_here = (NEVER_CAME, NOT_REMEMBERED)
        never = [each for each in self._missing(self._have) if each.why in not_here]
        later = [each for each in self._missing(self._since) if each.why not in not_here]
        return [each for each in self._gaps if each.why not in not_here] + never + later

    def unsent(self) -> list[Gap]:
        """Return the gaps of what there was no room for."""
        return [
            Gap(origin=origin, first=first, last=last, at_most=count, why=NO_ROOM)
            for origin, (first, last, count) in self._unsent.items()
        ]

    def read_selections(self) -> Iterator[int]:
        """Read what was found in blocks message by message, the newest first."""
        while self.selections:
            yield self._read(self.selections.pop())

    # --- what is still to be looked at

    @property
    def _count(self) -> int:
        return sum(count for _, count in self._blocks) + sum(len(run.items) for run in self._left)

    def _gather(self, have: Mapping[str, Have]) -> None:
        if self._log is not None:
            for block in self._log.blocks(have, self._overwritten):
                count = block.count - self._looked_at.get(block, 0)
                self._blocks += [(block, count)] if count else []
            return
        runs, too_far = self._replay.buffer.runs_above(self._patterns, have)
        new = [run for run in runs if id(run) not in self._runs]
        self._runs.update((id(run), run) for run in new)
        self._left += new
        self._gaps = too_far + self._gaps if have is self._have else self._gaps

    def _gather_new(self) -> None:
        """Gather what came since the last time."""
        log = self._log
        if log is not None and self._looked_at and not log.is_contiguous(list(self._looked_at)[-1]):
            self._log = None  # more came than the log holds: begin again with the buffer itself
            self.publications, self.selections, self._unsent = [], [], {}
            self._gaps = self._missing(self._have)
            self._gather(self._have)
        else:
            self._blocks = []
            self._gather(self._have if log is not None else self._settled)

    def _look(self) -> Iterator[int]:
        """Look at what was gathered."""
        blocks, self._blocks = self._blocks, []
        for block, _ in blocks:
            yield self._look_at_block(block)
        runs, self._left = self._left, []
        while runs:
            yield from self._look_at_run(runs.pop())

    def _look_at_block(self, block: Block) -> int:
        assert self._log is not None, "blocks are of the log"
        first = max(self._looked_at.get(block, 0), self._overwritten - block.first)
        units = block.count // 16 if block.has_columns else block.count // 2
        found = self._log.select(block, self._is_wanted, self._filter, self._have, first)
        self._looked_at[block] = block.count
        if len(found):
            self.selections.append(found)
        return 10 + units

    def _look_at_run(self, run: KeptRun[Kept]) -> Iterator[int]:
        """Look at the messages of a run, the last ones first."""
        had = self._have.get(run.origin, NOTHING)
        for stop in range(len(run.items), 0, -PIECE_MESSAGES):
            start = max(stop - PIECE_MESSAGES, 0)
            pieces = (
                list(run.items.packets(start, stop))
                if isinstance(run.items, PacketBatch)
                else run.items[start:stop]
            )
            for number in range(run.first + stop - 1, run.first + start - 1, -1):
                item = pieces[number - run.first - start]
                if item is None or number in had or not self._topics.match(item.topic):
                    continue
                self._take(publication_of(FoundMessage(run.origin, number, run.born_s, run.source, item)))
            yield 1 + (stop - start) // 2

    def _is_wanted(self, topic: str) -> bool:
        return bool(self._topics.match(topic))

    # --- what is found

    def _take(self, publication: Publication) -> None:
        """Take a message of the right topic, if its content is wanted and there is room."""
        if self._filter is not EVERYTHING and not self._filter.matches(publication.attributes()):
            return
        if not self._accept(publication):
            return
        if self._room_bytes > 0:
            self._room_bytes -= publication.size_bytes + OVERHEAD_BYTES
            self.publications.append(publication)
        else:
            self._leave_out(publication.origin, publication.number, publication.number, 1)

    def _read(self, selection: Selection) -> int:
        """Take the messages of a selection, the newest first, while there is room."""
        places = len(selection)
        while len(selection) and self._room_bytes > 0:
            newest, selection = selection.split(PIECE_MESSAGES)
            for publication in reversed(newest.publications()):
                if not self._accept(publication):
                    continue
                if self._room_bytes > 0:
                    self._room_bytes -= publication.size_bytes + OVERHEAD_BYTES
                    self.publications.append(publication)
                else:
                    self._leave_out(publication.origin, publication.number, publication.number, 1)
        names = self._replay.origins()
        for code, number in zip(selection.origins.tolist(), selection.numbers.tolist(), strict=True):
            self._leave_out(names[code], number, number, 1)
        return 1 + places

    def _leave_out(self, origin: str, first: int, last: int, count: int) -> None:
        known = self._unsent.get(origin)
        if known is not None:
            first, last, count = min(first, known[0]), max(last, known[1]), count + known[2]
        self._unsent[origin] = (first, last, count)

    def _missing(self, have: Mapping[str, Have]) -> list[Gap]:
        found = [gap for pattern in self._patterns for gap in self._replay.buffer.missing(pattern, have)]
        return list(dict.fromkeys(found))  # each once
