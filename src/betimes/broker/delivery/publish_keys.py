"""Deduplication of publications: a publisher that is not sure repeats a message under the same `$key`.

A task on a cluster, or a program that was killed, cannot know which of its messages were taken in. It sends
them again with QoS 1 or 2, and what came before under the same key is acknowledged and goes no further. The
last keys are remembered, so many of all publishers together; with a store, also across a restart.

A key counts for one user and one topic: no client can use up the keys of another.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

import mqtt5

from betimes.broker.storage.change_tables import Table
from betimes.model.user_properties import KEY

DIGEST_BYTES = 16


class PublishKeys:
    """The keys of what was published lately, the oldest first."""

    def __init__(self, keys_max: int, table: Table | None = None) -> None:
        self._keys_max = keys_max
        self._table = table
        self._keys: OrderedDict[bytes, None] = OrderedDict()  # a dict would be slow to lose its first
        self._count = 0  # that ever came: their order, for the table
        self.repeated = 0  # messages, since the start

    def __len__(self) -> int:
        return len(self._keys)

    def restore(self, rows: Iterable[tuple[bytes, int]]) -> None:
        """Take back the keys that the table held, each with its place in their order."""
        for digest, count in sorted(rows, key=lambda row: row[1]):
            self._keys[digest] = None
            self._count = count
        self._forget()

    def is_repeat(self, user: str | None, topic: str, packet: mqtt5.PublishPacket) -> bool:
        """Tell whether a message came before; remember its key, if it has one, where it did not."""
        properties = packet.user_properties
        if not properties:  # most messages
            return False
        key = next((value for name, value in properties if name == KEY), None)
        if key is None or not self._keys_max:
            return False
        digest = _digest(user, topic, key)
        if digest in self._keys:
            self.repeated += 1
            return True
        self._keys[digest] = None
        self._count += 1
        if self._table is not None:
            self._table.put((digest,), (self._count,))
        self._forget()
        return False

    def not_taken(self, user: str | None, topic: str, packet: mqtt5.PublishPacket) -> None:
        """Forget the key of a message that was refused after all: it may come again."""
        for name, value in packet.user_properties:
            if name == KEY:
                self._remove(_digest(user, topic, value))

    def _forget(self) -> None:
        while len(self._keys) > self._keys_max:
            self._remove(next(iter(self._keys)))

    def _remove(self, digest: bytes) -> None:
        self._keys.pop(digest, None)
        if self._table is not None:
            self._table.remove((digest,))


def _digest(user: str | None, topic: str, key: str) -> bytes:
    said = "\0".join(("" if user is None else f"={user}", topic, key))  # no text in MQTT holds a U+0000
    return hashlib.blake2b(said.encode(), digest_size=DIGEST_BYTES).digest()
