"""An index of subscriptions that is prepared once and matched with any number of frames."""

from __future__ import annotations

from types import TracebackType

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from betimes.model.errors import BetimesError
from betimes.pipeline.match.api import SAMPLE_ROWS
from betimes.pipeline.match.plan import INDEX_MB_MAX, MB
from betimes.pipeline.match.shared_set import SharedSet
from betimes.pipeline.rows.sources import frame_schema, numbered
from betimes.pipeline.rows.subscription_set import SubscriptionSet
from betimes.pipeline.rows.subscriptions import SUBSCRIBER, SubscriptionShape, read_subscriptions
from betimes.spark.rejected import rejected_subscriptions

ROWS_MAX = 5_000_000
NAME = "subscriptions"


class PrepareError(BetimesError):
    """An index that cannot be prepared, or was released: says which limit it exceeds, and what to do."""


class SubscriptionIndex:
    """An index of subscriptions on all machines of a session; `prepare` makes it, `match` uses it.

    Frames that `match` made keep the subscriptions of that time: `refresh` is for the frames after it. A
    streaming query therefore sees new subscriptions if it calls `match` for each batch (`foreachBatch`).
    """

    def __init__(self, subscriptions: DataFrame, *, rows_max: int, index_mb_max: float) -> None:
        self._rows_max, self._index_mb_max = rows_max, index_mb_max
        self._spark = subscriptions.sparkSession
        self._shared: SharedSet | None = None
        self.refresh(subscriptions)

    def refresh(self, subscriptions: DataFrame) -> None:
        """Read the subscriptions anew; if that fails, the index stays as it is.

        Spark drops the earlier index when no frame and no query uses it any more.
        """
        rows, shape = self._collected(subscriptions)
        columns, bad = read_subscriptions(rows, shape, NAME)
        built = SubscriptionSet(columns)
        self._check_mb(built.index.size_bytes / MB, len(columns))
        self._shared = SharedSet(self._spark, built)
        self._count, self._bad = len(columns), bad
        self.subscriber_type: pa.DataType = rows.schema.field(SUBSCRIBER).type

    def _collected(self, subscriptions: DataFrame) -> tuple[pa.Table, SubscriptionShape]:
        """Return the rows, by one job that stops at the limit."""
        if subscriptions.isStreaming:
            hint = "read them as a table, and call refresh when it changes"
            raise PrepareError(f"{NAME}: is a streaming frame\nhint: {hint}")
        schema = frame_schema(subscriptions, NAME)
        shape = SubscriptionShape.of(schema, NAME)
        rows = numbered(subscriptions, schema, shape.columns).limit(self._rows_max + 1).toArrow()
        if rows.num_rows > self._rows_max:
            hint = "match(events, subscriptions) divides them among tasks; or raise rows_max"
            raise PrepareError(f"{NAME}: has more than {self._rows_max:,} rows\nhint: {hint}")
        named = rows.rename_columns(shape.columns)
        if named.num_rows > SAMPLE_ROWS:  # before the whole index takes the memory
            some = SubscriptionSet(read_subscriptions(named.slice(0, SAMPLE_ROWS), shape, NAME)[0])
            if len(some):
                self._check_mb(some.index.size_bytes / MB / len(some) * named.num_rows, named.num_rows)
        return named, shape

    def _check_mb(self, size_mb: float, rows: int) -> None:
        if size_mb > self._index_mb_max:
            problem = f"the index of {rows:,} rows takes about {size_mb:,.0f} MB"
            hint = "match(events, subscriptions) divides them among tasks; or raise index_mb_max"
            raise PrepareError(f"{NAME}: {problem}, more than {self._index_mb_max:g}\nhint: {hint}")

    def __len__(self) -> int:
        return self._count

    @property
    def spark(self) -> SparkSession:
        """Return the session whose tasks find the index."""
        return self._spark

    @property
    def shared(self) -> SharedSet:
        """Return what tasks open; raise a PrepareError after `release`."""
        if self._shared is None:
            raise PrepareError("the index was released\nhint: prepare another one")
        return self._shared

    @property
    def size_mb(self) -> float:
        """Return how much of it each machine holds."""
        return self.shared.size_mb

    @property
    def rejected(self) -> DataFrame:
        """Return the subscriptions that cannot be read: source, place, reason and detail."""
        return rejected_subscriptions(self._spark, self._bad)

    def release(self) -> None:
        """Remove the index from all machines; frames that were made with it cannot be computed any more."""
        if self._shared is not None:
            self._shared.release()
            self._shared = None

    def __enter__(self) -> SubscriptionIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def prepare(
    subscriptions: DataFrame, *, rows_max: int = ROWS_MAX, index_mb_max: float = INDEX_MB_MAX
) -> SubscriptionIndex:
    """Read subscriptions once into an index that `match` uses on batch and streaming frames.

    A row is a subscription: `subscriber`, and its constraints in `filter`, `topic`, or columns such as
    `speed>=`, `speed<=` and `kind=`. This runs one job, which collects at most `rows_max` rows; the index is
    sent to each executor once and takes at most `index_mb_max` MB there. Beyond either limit it raises a
    `PrepareError`: `match(events, subscriptions)` has no such limit.

    Spark drops an index that nothing refers to; `release`, or the end of a `with` block, removes it at once.

    >>> wishes = spark.createDataFrame(
    ...     [("anna", "speed > 50"), ("bert", "speed >")], "subscriber string, filter string"
    ... )
    >>> index = prepare(wishes)
    >>> len(index), [row.place for row in index.rejected.collect()]
    (1, ['subscriber bert'])
    >>> events = spark.createDataFrame([(1, 61.0), (2, 40.0)], "event int, speed double")
    >>> match(events, index).matches.collect()
    [Row(event=1, subscribers=['anna'])]
    >>> index.refresh(spark.createDataFrame([("carl", "speed < 50")], "subscriber string, filter string"))
    >>> match(events, index).matches.collect()
    [Row(event=2, subscribers=['carl'])]
    >>> index.release()
    """
    return SubscriptionIndex(subscriptions, rows_max=rows_max, index_mb_max=index_mb_max)
