"""How does Spark know `format("betimes")`? `register(spark)` tells it, once for a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from betimes.model.errors import SettingError
from betimes.pipeline.streams.options import read_sink_options, read_source_options
from betimes.pipeline.streams.rows import SCHEMA
from betimes.pipeline.streams.sink import BatchWriter, StreamWriter
from betimes.pipeline.streams.source import BatchReader, StreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "betimes"


def register(spark: SparkSession) -> None:
    """Let a session read from brokers and write to them: `spark.readStream.format("betimes")`."""
    spark.dataSource.register(BetimesDataSource)


class BetimesDataSource(DataSource):
    """Brokers, as Spark sees them."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` is given."""
        return NAME

    def schema(self) -> str:
        """Return the columns that there are where no schema is given."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return who reads once."""
        return BatchReader(read_source_options(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's name
        """Return who reads batch after batch."""
        return StreamReader(read_source_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return who publishes the rows of a frame; what was published cannot be overwritten."""
        if overwrite:
            raise SettingError("mode", "overwrite", "what is published stays published", 'mode("append")')
        return BatchWriter(read_sink_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002, N802
        """Return who publishes the rows of a stream."""
        return StreamWriter(read_sink_options(self.options), schema)
