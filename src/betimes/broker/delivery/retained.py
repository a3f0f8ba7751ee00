"""Retained messages: the last publication of each topic (MQTT 5, section 3.3.1.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from betimes.broker.delivery.memory_account import LEVEL_BYTES, UserMemory
from betimes.broker.delivery.publication import Publication
from betimes.matching.topics import TopicNames

Note = Callable[[Publication | None, Publication | None], None]


class Retained:
    """The newest retained publication of each topic, found by pattern; at most so many, and so large."""

    def __init__(self, count_max: int, bytes_max: int, note: Note | None = None) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._note = note  # hears what takes the place of what, where that is to survive the broker
        self._by_topic: dict[str, Publication] = {}
        self._latest = 0  # number of what was kept since the start
        self._names = TopicNames()

    def __len__(self) -> int:
        return len(self._by_topic)

    def keep(self, publication: Publication, memory: UserMemory | None = None) -> bool:
        """Keep it in place of an older one; an empty one only removes that. False if there is no room.

        It is charged to the account of its publisher, where it has one here.
        """
        topic = publication.topic
        old = self._by_topic.get(topic)
        if not publication.packet.payload:
            self._forget(old)
            return True
        size = _memory_bytes(publication)
        if self._bytes + size - (_memory_bytes(old) if old else 0) > self._bytes_max:
            return False
        added_bytes = size - (_memory_bytes(old) if old and old.retained_by is memory else 0)
        if memory is not None and not memory.fits(added_bytes):
            return False
        if old is None:
            if len(self._by_topic) >= self._count_max:
                return False
            self._names.add(topic)
        else:
            self._release(old)
        publication.retained_by = memory
        if memory is not None:
            memory.charge(size)
        self._by_topic[topic] = publication
        self._latest = publication.retained_as = self._latest + 1
        self._bytes += size
        if self._note is not None:
            self._note(old, publication)
        return True

    def restore(self, publication: Publication) -> bool:
        """Keep what the store held; False if there is no room."""
        note, self._note = self._note, None  # the store knows it
        kept = self.keep(publication)
        self._note = note
        return kept

    def meeting(self, pattern: str, now_s: float) -> Iterator[Publication]:
        """Yield what is retained now of the topics that meet a pattern; what has become void is forgotten.

        Messages may be retained and deleted between two of them; those that are retained later are left out.
        """
        return self._meeting(pattern, self._latest, now_s)

    def _meeting(self, pattern: str, latest: int, now_s: float) -> Iterator[Publication]:
        for name in self._names.meeting(pattern):
            publication = self._by_topic.get(name)
            if publication is None or publication.retained_as > latest:
                continue
            if now_s >= publication.void_at_s:
                self._forget(publication)
            else:
                yield publication

    def _release(self, publication: Publication) -> None:
        size, memory = _memory_bytes(publication), publication.retained_by
        self._bytes -= size
        if memory is not None:
            memory.charge(-size)
            publication.retained_by = None

    def _forget(self, publication: Publication | None) -> None:
        if publication is not None:
            del self._by_topic[publication.topic]
            self._names.remove(publication.topic)
            self._release(publication)
            if self._note is not None:
                self._note(publication, None)


def _memory_bytes(publication: Publication) -> int:
    return publication.size_bytes + LEVEL_BYTES * (publication.topic.count("/") + 1)
