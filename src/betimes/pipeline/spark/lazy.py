"""The names of PySpark that jobs use, imported on first use: a command that opens no Spark starts without it.

Types are for annotations alone.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyspark.sql.functions as F  # noqa: N812 -- the usual name
    from pyspark.sql import Column, DataFrame, SparkSession, Window
else:
    Column = DataFrame = SparkSession = Any

    class _OnFirstUse:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(resolve_name(self._name), attribute)

    F, Window = _OnFirstUse("pyspark.sql.functions"), _OnFirstUse("pyspark.sql:Window")

__all__ = ["Column", "DataFrame", "F", "SparkSession", "Window"]
