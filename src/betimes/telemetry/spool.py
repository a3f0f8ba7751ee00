"""Telemetry messages written to files again, for readers of files.

All rows of a kind since the last write become one file, of all brokers together, and its time is that of the
oldest message in it. A message that cannot be read becomes a file as it is: the reader of the files reports
it as damaged. Rows are held up to a limit, and the reader removes files once it is done with them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.telemetry.files import KINDS, UNFINISHED
from betimes.telemetry.messages import TelemetryMessageError, read_telemetry, read_topic

ROWS_HELD_MAX = 500_000  # of all kinds
FILES_MAX = 10_000  # unread files: above that the oldest are deleted
BROKEN_HELD_MAX = 100  # messages that cannot be read


class Spool:
    """A directory of telemetry that is filled from messages."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, list[pa.Table]] = {kind: [] for kind in KINDS}
        self._broken: list[tuple[str, bytes]] = []
        self._rows = 0
        self._first_s: dict[str, float] = {}  # by kind: when the oldest arrived
        self._brokers: set[str] = set()
        self._number = time.time_ns()  # each process numbers its files above all earlier ones
        self.left_out = 0  # rows and broken messages beyond the limits, and files that were not read in time
        for kind in KINDS:
            (directory / kind).mkdir(parents=True, exist_ok=True)

    def take(self, topic: str, payload: bytes, at_s: float) -> None:
        """Add a message that arrived at this time; a topic that is not telemetry's is an error."""
        broker, kind = read_topic(topic)
        if broker not in self._brokers:
            self._brokers.add(broker)
            (self._directory / f"{UNFINISHED}-{quote(broker, safe='')}").touch()
        try:
            rows = read_telemetry(topic, payload)
        except TelemetryMessageError:
            if len(self._broken) < BROKEN_HELD_MAX:
                self._broken.append((kind, payload))
            else:
                self.left_out += 1
            return
        room = max(ROWS_HELD_MAX - self._rows, 0)
        self.left_out += max(rows.num_rows - room, 0)
        taken = rows.slice(0, room)
        if taken.num_rows:
            self._rows += taken.num_rows
            self._held[kind].append(taken)
            self._first_s.setdefault(kind, at_s)

    def write(self) -> list[Path]:
        """Write the held rows, a file for each kind, and return the files."""
        written = []
        for kind, tables in self._held.items():
            if tables:
                path = self._new_place(kind)
                new = path.with_name(f".{path.name}")
                pq.write_table(pa.concat_tables(tables), new)
                os.utime(new, (self._first_s[kind], self._first_s[kind]))
                written.append(new.replace(path))
                tables.clear()
        for kind, payload in self._broken:
            path = self._new_place(kind)
            path.with_name(f".{path.name}").write_bytes(payload)
            written.append(path.with_name(f".{path.name}").replace(path))
        self._broken.clear()
        self._first_s.clear()
        self._rows = 0
        self._prune()
        return written

    @staticmethod
    def remove(paths: Iterable[Path]) -> None:
        """Remove files that are done with."""
        for path in paths:
            path.unlink(missing_ok=True)

    def _new_place(self, kind: str) -> Path:
        self._number += 1
        return self._directory / kind / f"part-{self._number}.parquet"

    def _prune(self) -> None:
        """Remove the oldest unread files above the limit."""
        files = sorted(self._directory.glob("*/part-*.parquet"), key=lambda path: path.name)
        surplus = files[: max(len(files) - FILES_MAX, 0)]
        self.left_out += len(surplus)
        self.remove(surplus)
