"""The data source `format("betimes")`: `register(spark)` adds it to a session."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from betimes.model.errors import SettingError
from betimes.pipeline.spark.lazy import SparkSession
from betimes.pipeline.streams.options import includes_headers, read_sink_options, read_source_options
from betimes.pipeline.streams.rows import HEADERS, SCHEMA
from betimes.pipeline.streams.sink import BatchWriter, StreamWriter
from betimes.pipeline.streams.source import BatchReader, PushingReader, StreamReader

NAME = "betimes"


def register(spark: SparkSession) -> None:
    """Let a session read from brokers and write to them: `spark.readStream.format("betimes")`."""
    spark.dataSource.register(BetimesDataSource)


class BetimesDataSource(DataSource):
    """Brokers, as Spark sees them."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return NAME

    def schema(self) -> str:
        """Return the default columns."""
        return f"{SCHEMA}, {HEADERS}" if includes_headers(self.options) else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        options = read_source_options(self.options)
        return (PushingReader if options.pushes_filters else BatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's name
        """Return the reader of a streaming query."""
        return StreamReader(read_source_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a frame; `overwrite` is an error, because published events stay published."""
        if overwrite:
            raise SettingError("mode", "overwrite", "what is published stays published", 'mode("append")')
        return BatchWriter(read_sink_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002, N802
        """Return the writer of a stream."""
        return StreamWriter(read_sink_options(self.options), schema)
