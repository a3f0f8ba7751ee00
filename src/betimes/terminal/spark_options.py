"""Options that choose a Spark cluster, and starting Spark with a progress message."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from betimes.terminal.progress import waiting

if TYPE_CHECKING:
    from betimes.pipeline.spark.lazy import SparkSession

MasterOption = Annotated[
    str | None,
    typer.Option("--master", help="Spark master: local[4], spark://HOST:7077, yarn. Default: this machine."),
]
RemoteOption = Annotated[
    str | None,
    typer.Option("--remote", help="Spark Connect server: sc://HOST:15002, instead of --master."),
]


def open_spark(app_name: str, master: str | None = None, remote: str | None = None) -> SparkSession:
    """Start Spark, or raise an error that the user can act on."""
    from betimes.pipeline.spark.session import open_session

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_news)
    with waiting("starting Spark"):
        return open_session(app_name, master=master, remote=remote)


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether to log a record: py4j also raises what it logs, so its records are left out."""
    return "py4j" not in record.pathname
