"""Batches of events from plain columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from betimes.matching.index.event_batch import MISSING_CODE, EventBatch, TextColumn


def encoded_texts(column: Sequence[str | None]) -> TextColumn:
    """Return the column with each distinct text stored once."""
    codes: dict[str, int] = {}
    encoded = [MISSING_CODE if text is None else codes.setdefault(text, len(codes)) for text in column]
    return TextColumn(texts=tuple(codes), codes=np.asarray(encoded, np.int32))


def column_batch(
    *,
    numbers: Mapping[str, NDArray[np.floating]] | None = None,
    texts: Mapping[str, Sequence[str | None]] | None = None,
    flags: Mapping[str, NDArray[np.integer]] | None = None,
) -> EventBatch:
    """Return the batch of plain columns of one length; None is a missing text."""
    number_columns = {name: np.asarray(column, np.float64) for name, column in (numbers or {}).items()}
    text_columns = {name: encoded_texts(column) for name, column in (texts or {}).items()}
    flag_columns = {name: np.asarray(column, np.int8) for name, column in (flags or {}).items()}
    sizes = [len(column) for column in number_columns.values()]
    sizes += [len(column) for column in flag_columns.values()]
    sizes += [len(column.codes) for column in text_columns.values()]
    return EventBatch(
        size=sizes[0] if sizes else 0, numbers=number_columns, texts=text_columns, flags=flag_columns
    )
