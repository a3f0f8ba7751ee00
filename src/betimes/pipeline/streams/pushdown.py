"""Predicates of Spark as content filters of the broker, where both say exactly the same.

A broker compares attributes that have no type, and Spark columns that have one. For `double` columns and
numbers, and for `string` columns and texts that read as neither number nor flag, the two agree for every
message, also where the attribute is missing. All other predicates stay with Spark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from betimes.language.filters.parse import parse_filter
from betimes.model.errors import TextError
from betimes.model.events import flag_reading, number_reading
from betimes.pipeline.streams.rows import COLUMNS

VALUES_MAX = 100  # of one IN
SIGNS = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


def push_filters(
    filters: Sequence[Filter], schema: StructType, own: str | None
) -> tuple[str | None, list[Filter]]:
    """Return the content filter for the broker, which includes `own`, and the predicates left to Spark."""
    kinds = {each.name: each.dataType.simpleString() for each in schema.fields if each.name not in COLUMNS}
    texts = {id(each): text for each in filters if (text := _text(each, kinds)) is not None}
    if not texts:
        return own, list(filters)
    whole = " AND ".join([*([] if own is None else [f"({own})"]), *dict.fromkeys(texts.values())])
    try:
        parse_filter(whole)
    except TextError:  # it is too long, or has too many boxes
        return own, list(filters)
    compared = {_column(each) for each in filters if id(each) in texts}
    return whole, [
        each
        for each in filters
        # what is compared is not NULL
        if id(each) not in texts and not (isinstance(each, IsNotNull) and _column(each) in compared)
    ]


def _text(predicate: Filter, kinds: dict[str, str]) -> str | None:
    """Return a predicate as the text of a content filter; None where that might mean something else."""
    name = _column(predicate)
    if name not in kinds or "`" in name or not name.isprintable():
        return None
    kind = kinds[name]
    if isinstance(predicate, In):
        values = [each for each in predicate.value if each is not None]
        written = [_literal(each, kind) for each in values]
        if not written or len(written) > VALUES_MAX or None in written:
            return None
        return f"`{name}` IN ({', '.join(map(str, written))})"
    sign = SIGNS.get(type(predicate))
    if sign is None or (kind == "string" and sign != "="):
        return None
    literal = _literal(getattr(predicate, "value", None), kind)
    return None if literal is None else f"`{name}` {sign} {literal}"


def _literal(value: Any, kind: str) -> str | None:
    if kind == "double" and isinstance(value, int | float) and not isinstance(value, bool):
        return repr(float(value)) if math.isfinite(value) else None
    if kind == "string" and isinstance(value, str) and value.isprintable():
        is_plain = number_reading(value) is None and flag_reading(value) is None
        return f"'{value}'" if is_plain and not set(value) & {"'", '"', "\\"} else None
    return None


def _column(predicate: Filter) -> str:
    path: tuple[str, ...] = getattr(predicate, "attribute", ())
    return path[0] if len(path) == 1 else ""
