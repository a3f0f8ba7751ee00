"""The replay buffer of a live broker: what is kept of all publications for subscribers that come back.

The hub only puts each packet into a list (`keep`), because this is the hot path. What one read of a socket
brought becomes one run of the buffer when all of it was handled (`close_run`). Where the read held
publications only, the bytes are kept as they came, and read again for clients that resume.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from betimes.broker.delivery.publication import Publication, publication_of
from betimes.broker.delivery.session import Session
from betimes.broker.replay.recent_log import RecentLog
from betimes.matching.topics import topic_matches
from betimes.model.buffer_settings import LRP, RANDOM, BufferSettings
from betimes.model.events import number_reading
from betimes.model.filters import EVERYTHING, Filter
from betimes.model.positions import Gap, Have
from betimes.model.user_properties import IMPORTANCE
from betimes.mqtt.codec import Item
from betimes.mqtt.packet_batch import Kept, PacketBatch
from betimes.mqtt.packets import OVERHEAD_BYTES, encode_publish
from betimes.replay.buffer import FoundMessage, KeptRun, PartitionedBuffer, pattern_covers

PIECES_MIN = 16  # that a full buffer consists of
AFAR_MAX = 64  # messages of another broker that are kept together
AT_ONCE_S = 0.001  # what was published together was published within this
IMPORTANCE_MAX = 1e6

_number, _born_s = attrgetter("number"), attrgetter("born_s")


class ReplayBuffer:
    """What one broker keeps for clients that come back; its own numbers go on from `next_number`.

    `clock_ahead_s` is the time of day less the broker's own clock. It stays the same for the life of the
    broker, so that the time at which a message was published does, too.
    """

    def __init__(
        self, settings: BufferSettings, own: str, next_number: int, *, clock_ahead_s: float = 0.0
    ) -> None:
        self.settings = settings
        self.clock_ahead_s = clock_ahead_s
        self._own = own
        self._next_number = next_number
        self._buffer: PartitionedBuffer[Kept] = PartitionedBuffer(
            settings, own, next_number, pick=random.Random().randrange
        )
        self.takes_runs = self._buffer.takes_runs  # messages that come together are kept together
        self._reads_content = any(each.filter != EVERYTHING for each in settings.partitions)
        self._weighs = any(each.overwrite not in (LRP, RANDOM) for each in settings.partitions)
        # Where messages are overwritten in the order in which they came, the newest are found fast.
        self._log = RecentLog() if self.takes_runs else None
        self._coming: list[Kept | None] = []
        self._is_split = False  # a part of what came was kept already
        self._from_afar: list[Publication] = []  # one behind the other, still to be kept
        self._afar_bytes = 0
        terms = settings.partitions[0]
        self._afar_max = min(AFAR_MAX, terms.messages_max // PIECES_MIN)
        self._afar_bytes_max = terms.bytes_max // PIECES_MIN
        self.resumed = self.replayed = self.gaps_told = 0  # since the start: subscriptions, messages, gaps
        self.keep: Callable[[Kept | None], None] = self._coming.append  # the next number's; None: refused

    @property
    def buffer(self) -> PartitionedBuffer[Kept]:
        """Return what is kept, with all that has come from other brokers."""
        self._close_afar()
        return self._buffer

    @property
    def last_number(self) -> int:
        """Return the last number that was given here."""
        return self._next_number + len(self._coming) - 1

    def close_run(
        self,
        publisher: str,
        size_bytes: int | None,
        now_s: float,
        whole: bytes = b"",
        packets: Sequence[Item] = (),
    ) -> None:
        """Move what was given to `keep` into the buffer: one client published it, in so many bytes.

        Where `whole` holds just these packets, one behind the other, only that is kept.
        """
        items, is_split, self._is_split = self._coming[:], self._is_split, False
        if not items:
            return
        self._coming.clear()
        first = self._next_number
        self._next_number += len(items)
        if size_bytes is None or is_split or not self.takes_runs:
            size_bytes = sum(len(each.payload) + len(each.topic) for each in items if each is not None)
        size_bytes += OVERHEAD_BYTES * len(items)
        if self.takes_runs:
            run = KeptRun(self._own, first, items, size_bytes, now_s, publisher)
            self._put_runs(run, whole if not is_split and _are_just(items, packets) else b"", now_s)
            return
        for number, item in enumerate(items, first):
            if item is None:
                self._buffer.note(self._own, number)
            else:
                found = FoundMessage(self._own, number, now_s, publisher, item)
                self._put(publication_of(found), now_s)

    def keep_part(self, data: bytes, count: int, version: int, publisher: str, now_s: float) -> None:
        """Keep a batch that a client published, behind what was given to `keep` before."""
        self.close_run(publisher, None, now_s)
        self._is_split = True
        first = self._next_number
        self._next_number += count
        items, size_bytes = PacketBatch(data, count, version), len(data) + OVERHEAD_BYTES * count
        self._put_runs(KeptRun(self._own, first, items, size_bytes, now_s, publisher), b"", now_s)

    def take(self, publication: Publication, now_s: float) -> None:
        """Keep what was published at another broker."""
        if not self.takes_runs:
            self._put(publication, now_s)
            return
        coming = self._from_afar
        if coming and (
            publication.number != coming[-1].number + 1
            or publication.origin != coming[-1].origin
            or publication.publisher != coming[-1].publisher
            or abs(publication.born_s - coming[0].born_s) > AT_ONCE_S
        ):
            self._close_afar()
        self._from_afar.append(publication)
        self._afar_bytes += publication.size_bytes
        if len(self._from_afar) >= self._afar_max or self._afar_bytes > self._afar_bytes_max:
            self._close_afar()

    def missed(
        self, pattern: str, have: Mapping[str, Have], content_filter: Filter = EVERYTHING
    ) -> tuple[list[Publication], list[Gap]]:
        """Return what is kept, matches and is new to a client, in order for each origin, and the gaps."""
        log = self.log_for(have)
        if log is not None:
            by_origin: dict[str, list[Publication]] = {}
            selections = log.missed(pattern, content_filter, have, self._buffer.overwritten)
            for each in [each for selection in selections for each in selection.publications()]:
                by_origin.setdefault(each.origin, []).append(each)
            for flow in by_origin.values():
                flow.sort(key=_number)  # some may have been overtaken on their way
            return list(heapq.merge(*by_origin.values(), key=_born_s)), self.buffer.missing(pattern, have)
        found, gaps = self._buffer.missed(pattern, have)
        on_topic = [publication_of(each) for each in found if topic_matches(pattern, each.item.topic)]
        return [each for each in on_topic if content_filter.matches(each.attributes())], gaps

    def log_for(self, have: Mapping[str, Have]) -> RecentLog | None:
        """Return the log of the newest messages; None: it does not reach back to all that a client lacks."""
        self._close_afar()
        return self._log if self._log is not None and self._log.reaches(have) else None

    def origins(self) -> list[str]:
        """Return the origin of each code in selections."""
        return [] if self._log is None else self._log.origins

    def missing(
        self, patterns: Sequence[str], begins: Mapping[str, int], ends: Mapping[str, int]
    ) -> list[Gap]:
        """Return what is not kept here of what is numbered behind `begins` up to `ends`."""
        have, buffer = {origin: Have(floor=number) for origin, number in begins.items()}, self.buffer
        found = [gap for pattern in patterns for gap in buffer.missing(pattern, have)]
        cut: dict[Gap, None] = {}  # each once
        for gap in found:
            last = min(gap.last, ends.get(gap.origin, 0))
            if gap.first <= last:
                cut[replace(gap, last=last, at_most=min(gap.at_most, last - gap.first + 1))] = None
        return list(cut)

    def is_whole(self, patterns: Iterable[str], *, is_linked: bool) -> bool:
        """Tell whether all publications on such topics, of any broker, come here and are kept."""
        return all(
            (not is_linked or any(pattern_covers(each, pattern) for each in self.settings.fetch))
            and self._buffer.covers(pattern)
            for pattern in patterns
        )

    def client_left(self, session: Session, now_s: float) -> None:
        """Note that a client left, with all its subscriptions that resume."""
        for subscription in session.subscriptions.values():
            if subscription.options is not None and subscription.options.resumes:
                self._buffer.left(session.client_id, subscription.pattern, now_s)

    def _put_runs(self, run: KeptRun[Kept], whole: bytes, now_s: float) -> None:
        """Keep a run, in pieces where it is a large part of the buffer: a run is overwritten as a whole."""
        terms, count = self.settings.partitions[0], len(run.items)
        parts = max(count * PIECES_MIN // terms.messages_max, run.size_bytes * PIECES_MIN // terms.bytes_max)
        if not parts:
            self._put_run(run._replace(items=PacketBatch(whole, count)) if whole else run, now_s)
            return
        each = max(count // (parts + 1), 1)
        for at in range(0, count, each):
            items = run.items[at : at + each]
            size_bytes = run.size_bytes * len(items) // count
            self._put_run(run._replace(first=run.first + at, items=items, size_bytes=size_bytes), now_s)

    def _close_afar(self) -> None:
        """Keep what came from another broker one behind the other, as one run."""
        coming, size_bytes = self._from_afar, self._afar_bytes
        if not coming:
            return
        self._from_afar, self._afar_bytes = [], 0
        first = coming[0]
        packets = PacketBatch(b"".join([encode_publish(each.packet) for each in coming]), len(coming))
        run = KeptRun(first.origin, first.number, packets, size_bytes, first.born_s, first.publisher)
        self._put_run(run, first.born_s)

    def _put_run(self, run: KeptRun[Kept], now_s: float) -> None:
        assert self._log is not None, "a buffer that takes runs has a log of them"
        if self._buffer.put_run(run, now_s):
            self._log.add(run)

    def _put(self, publication: Publication, now_s: float) -> None:
        run = KeptRun(
            publication.origin,
            publication.number,
            (publication.packet,),
            publication.size_bytes,
            publication.born_s,
            publication.publisher,
            importance_of(publication.packet) if self._weighs else 1.0,
        )
        attributes = publication.attributes() if self._reads_content else {}
        self._buffer.put(run, publication.topic, attributes, now_s)


def _are_just(items: Sequence[Kept | None], packets: Sequence[Item]) -> bool:
    """Tell whether the kept messages are all that was read, unchanged."""
    at = 0
    for packet in packets:
        if isinstance(packet, PacketBatch):
            at += len(packet)
        elif at < len(items) and items[at] is packet:
            at += 1
        else:
            return False
    return at == len(items) and None not in items


def importance_of(packet: Kept) -> float:
    """Return the importance that a publisher states; 1 where it states none that can be read."""
    for name, value in packet.user_properties:
        if name == IMPORTANCE:
            number = number_reading(value)
            return 1.0 if number is None else min(max(number, 0.0), IMPORTANCE_MAX)
    return 1.0
