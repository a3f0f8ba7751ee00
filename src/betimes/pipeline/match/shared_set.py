"""A set of subscriptions where the tasks of a session find it, for as long as one of them may ask for it.

A classic session broadcasts it: Spark sends it to each executor once, and drops it when no frame and no
streaming query refers to it any more, or at once when it is released. (`SparkContext.addFile` cannot be
undone.) A worker maps the file into which Spark put the broadcast, so that the workers of one executor share
its memory. PySpark deletes its own file of a broadcast only when that is destroyed: `sweep` deletes the
files of those that Spark has dropped.

A Spark Connect session gets it as an artifact, under a name made of its content: the server keeps that until
the session ends, and does not keep the same content twice.

What is broadcast is one index: at most `MatchSettings.index_mb_max`, 512 MB unless the caller asks for more.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from betimes.pipeline.match.plan import MB
from betimes.pipeline.rows.subscription_set import (
    SubscriptionSet,
    digest_of,
    load_set,
    set_in,
    set_parts,
    write_parts,
)
from betimes.pipeline.spark.lazy import SparkSession
from betimes.pipeline.spark.session import is_local, is_remote

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext

KEPT_MAX = 2  # sets that a worker process keeps open
DROPPED_MAX = 8  # files of broadcasts that wait for Java to collect its garbage
TEMPORARY = "betimes-match-"
_CACHE_LINE_BYTES = 64
# Spark pickles what it broadcasts: so many bytes stand before the content of a large value.
_PICKLE_BYTES = pickle.dumps(b"x" * (1 << 17), protocol=5).find(b"xxxx")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPlace:
    """Where a worker finds a set: in a file of its machine, an artifact of its session, or a broadcast."""

    digest: str  # of the content
    path: str | None = None
    artifact: str | None = None
    broadcast: Broadcast[bytes] | None = None

    def load(self) -> SubscriptionSet:
        """Return the set; a file is mapped into memory."""
        if self.path is not None:
            return load_set(Path(self.path))
        if self.artifact is not None:
            return load_set(_artifact(self.artifact))
        assert self.broadcast is not None, "no place"
        file = getattr(self.broadcast, "_path", None)
        if file is not None:
            return load_set(Path(file))
        # Spark encrypts its files: the value came over a socket
        return set_in(memoryview(bytearray(self.broadcast.value))[_lead_bytes() :])


def _artifact(name: str) -> Path:
    """Return the file of an artifact.

    Spark tells the tasks of a streaming query the folder of all sessions, not that of the query's session.
    """
    from pyspark import SparkFiles

    path = Path(SparkFiles.get(name))
    return path if path.exists() else next(path.parent.glob(f"*/{name}"), path)


_kept: dict[str, SubscriptionSet] = {}  # by content, in the order of use; one per worker process


def kept_set(place: SetPlace) -> SubscriptionSet:
    """Return the set, which stays open while tasks ask for it and for few others."""
    found = _kept.pop(place.digest, None)
    if found is None:
        found = place.load()
        while len(_kept) >= KEPT_MAX:
            del _kept[next(iter(_kept))]
    _kept[place.digest] = found
    return found


def _lead_bytes() -> int:
    """Return how many bytes to put before the content, so that its arrays begin at cache lines."""
    return -_PICKLE_BYTES % _CACHE_LINE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dropped:
    """The file of a broadcast that nothing in Python refers to; frames in Java may."""

    context: SparkContext
    in_java: Any  # a weak reference of Java to the broadcast
    path: Path

    def is_needed(self) -> bool:
        """Return whether Java still holds the broadcast."""
        is_stopped = getattr(self.context, "_jsc", None) is None
        return not is_stopped and self.in_java.get() is not None


_dropped: list[_Dropped] = []


def sweep() -> int:
    """Delete the files of broadcasts that Spark has dropped; return how many are left for frames to read.

    Java is asked to collect its garbage where more than `DROPPED_MAX` wait for that.
    """
    if len(_dropped) > DROPPED_MAX:
        java: Any = _dropped[-1].context._jvm
        java.System.gc()
    for each in list(_dropped):
        if not each.is_needed():
            each.path.unlink(missing_ok=True)
            _dropped.remove(each)
    return len(_dropped)


class SharedSet:
    """A set that all tasks of a session can open."""

    def __init__(self, spark: SparkSession, wanted: SubscriptionSet) -> None:
        parts = set_parts(wanted)
        digest = digest_of(parts)
        self.attributes = wanted.attributes
        self.size_mb = sum(map(len, parts)) / MB
        self._broadcast: Broadcast[bytes] | None = None
        if is_remote(spark):
            with tempfile.TemporaryDirectory(prefix=TEMPORARY) as folder:
                path = Path(folder) / f"betimes-{digest}.set"
                write_parts(parts, path)
                spark.addArtifacts(str(path), file=True)
            self.place = SetPlace(digest=digest, artifact=path.name)
            return
        sweep()
        context: Any = spark.sparkContext
        made: Any = context.broadcast(b"".join([bytes(_lead_bytes()), *parts]))
        self._broadcast = made
        self.place = SetPlace(digest=digest, broadcast=made)
        weak = context._jvm.java.lang.ref.WeakReference(made._jbroadcast)
        dropped = _Dropped(context=context, in_java=weak, path=Path(made._path))
        self._finalizer = weakref.finalize(self, _dropped.append, dropped)
        self._finalizer.atexit = False  # Java deletes what is left

    def release(self) -> None:
        """Remove the set from all machines at once: tasks of frames that were made with it then fail."""
        if self._broadcast is not None:
            self._finalizer.detach()
            self._broadcast.destroy(blocking=True)
            self._broadcast = None


@contextmanager
def set_for_job(spark: SparkSession, wanted: SubscriptionSet) -> Iterator[SetPlace]:
    """Share a set with the tasks of a job that is over when the block ends; nothing of it stays."""
    if is_remote(spark) or not is_local(spark.sparkContext.master or ""):
        shared = SharedSet(spark, wanted)
        try:
            yield shared.place
        finally:
            shared.release()
        return
    # tasks are on this machine: Spark need not hold a copy
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))
    try:
        parts = set_parts(wanted)
        write_parts(parts, folder / "subscriptions.set")
        yield SetPlace(digest=digest_of(parts), path=str(folder / "subscriptions.set"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
