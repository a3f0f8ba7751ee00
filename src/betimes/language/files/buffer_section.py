"""The [buffer] table of a broker's configuration file: the replay buffer."""

from __future__ import annotations

import math

from betimes.language.files.table_reader import (
    PRICE_MAX,
    TomlTable,
    WrongValueError,
    any_text,
    count_between,
    described,
    flag,
    number_between,
    one_of,
    positive,
    quantity,
)
from betimes.language.filters.parse import parse_filter
from betimes.language.quantities import read_duration_s, read_size_kb
from betimes.language.suggestions import quoted
from betimes.model.buffer_settings import OVERWRITING_NAMES, BufferSettings, PartitionTerms
from betimes.model.filters import EVERYTHING, Filter

PARTITIONS_MAX = 1_000
FETCH_MAX = 1_000
MESSAGES_MAX = 100_000_000

_duration = positive(quantity(read_duration_s, "12s"))
_size_kb = positive(quantity(read_size_kb, "64MB"))
_messages = count_between(1, MESSAGES_MAX)
_overwrite = one_of(*OVERWRITING_NAMES)


def read_buffer_settings(table: TomlTable) -> BufferSettings | None:
    """Return the settings in a [buffer] table; None if the broker is to keep nothing."""
    usual = BufferSettings()
    keep = table.optional("keep", flag, otherwise=True)
    whole = _read_partition(table, PartitionTerms(), is_whole=True)
    partitions = [
        _read_partition(each, whole, is_whole=False) for each in table.tables("partitions", PARTITIONS_MAX)
    ]
    settings = BufferSettings(
        partitions=tuple(partitions) or (whole,),
        outage_s_mean=table.optional("outage", _duration, usual.outage_s_mean),
        fetch=table.optional("fetch", _patterns, usual.fetch),
        fetch_price=table.optional("fetch_price", number_between(0.0, PRICE_MAX), usual.fetch_price),
        fetch_within_s=table.optional("fetch_within", _duration, usual.fetch_within_s),
    )
    table.close()
    return settings if keep else None


def _read_partition(table: TomlTable, usual: PartitionTerms, *, is_whole: bool) -> PartitionTerms:
    """Return the terms of a partition; the defaults are those of the whole buffer."""
    terms = PartitionTerms(
        pattern=usual.pattern if is_whole else table.optional("pattern", _pattern, usual.pattern),
        filter=EVERYTHING if is_whole else table.optional("filter", _filter, EVERYTHING),
        messages_max=table.optional("messages", _messages, usual.messages_max),
        bytes_max=table.optional("size", _bytes, usual.bytes_max),
        overwrite=table.optional("overwrite", _overwrite, usual.overwrite),
    )
    if not is_whole:
        table.close()
    return terms


def _patterns(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise WrongValueError(
            f"a list of topic patterns was expected here, not {described(value)}",
            'write ["#"] for everything',
        )
    if len(value) > FETCH_MAX:
        raise WrongValueError(f"there are {len(value):,} of them, and {FETCH_MAX:,} are allowed")
    return tuple(dict.fromkeys(_pattern(each) for each in value))


def _pattern(value: object) -> str:
    text = any_text(value)
    levels = text.split("/")
    for place, level in enumerate(levels):
        is_last = place == len(levels) - 1
        if ("#" in level and (level != "#" or not is_last)) or ("+" in level and level != "+"):
            raise WrongValueError(f"{quoted(text)} is no topic pattern", "write a/+/c or a/#")
    if not text or "\0" in text or text.startswith("$"):
        raise WrongValueError(f"{quoted(text)} is not a pattern of what clients publish")
    return text


def _filter(value: object) -> Filter:
    return parse_filter(any_text(value))


def _bytes(value: object) -> int:
    return math.ceil(_size_kb(value) * 1000.0)
