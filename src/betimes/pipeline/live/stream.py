"""New telemetry files, found by Structured Streaming: each file once, also after a restart."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from betimes.model.errors import BetimesError
from betimes.pipeline.spark.lazy import DataFrame, SparkSession
from betimes.telemetry.files import KINDS, PART_NAME

CHECKPOINT = "checkpoint"
FILES_PER_BATCH = 1_000
LOOK_EVERY_S = 0.2  # whether the stream is to end
# The columns of any file; the content is not read here.
FILE_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file of telemetry, and when it was written."""

    path: Path
    written_at_s: float  # on the clock of the file system


Act = Callable[[int, list[NewFile]], None]  # on a batch: its number, and its files


def follow(
    spark: SparkSession,
    telemetry: Path,
    place: Path,
    act: Act,
    *,
    every_s: float,
    ending: threading.Event,
    once: bool = False,
) -> None:
    """Call `act` on each new file of telemetry, once; until `ending` is set, or for the files that exist."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    files = (
        spark.readStream.format("binaryFile")
        .schema(FILE_COLUMNS)
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "part-*.parquet")
        .option("maxFilesPerTrigger", FILES_PER_BATCH)
        .load(str(telemetry.absolute()))
        .select("path", "modificationTime")
    )

    def take(frame: DataFrame, batch: int) -> None:
        rows = frame.collect()
        found = [
            NewFile(path=path_of(row.path), written_at_s=row.modificationTime.timestamp()) for row in rows
        ]
        act(batch, [each for each in found if is_part(each.path)])

    write = files.writeStream.foreachBatch(take).option("checkpointLocation", str(place / CHECKPOINT))
    timed = write.trigger(availableNow=True) if once else write.trigger(processingTime=f"{every_s} seconds")
    failure: Exception | None
    try:
        query = timed.start()
        try:
            while query.isActive and not ending.wait(LOOK_EVERY_S):
                pass
        finally:
            query.stop()
        failure = query.exception()
    except (PySparkException, Py4JError) as error:
        failure = None if ending.is_set() else error  # the signal that ended us may have ended Java before
    if failure is not None:
        first = (str(failure).strip().splitlines() or [type(failure).__name__])[0]
        raise BetimesError(f"{telemetry}: the stream of telemetry broke: {first}") from failure


def path_of(text: str) -> Path:
    """Return the path that Spark writes with a scheme and escapes, unescaped.

    >>> path_of("file:/out/live/sent/part-b%2F1-0.parquet")
    PosixPath('/out/live/sent/part-b%2F1-0.parquet')
    """
    return Path(re.sub("^file:/+", "/", text))


def is_part(path: Path) -> bool:
    """Return whether this is a file of telemetry, by its name and its folder's."""
    return path.parent.name in KINDS and PART_NAME.fullmatch(path.name) is not None
