"""Does a [buffer] table mean what it says, and is what is wrong in it told with its place?"""

from __future__ import annotations

import pytest

from betimes.language.files.server_file import read_server_file
from betimes.model.buffer_settings import BufferSettings
from betimes.model.errors import FileMistakesError
from betimes.model.filters import EVERYTHING


def read(text: str) -> BufferSettings | None:
    return read_server_file(text, "broker.toml").buffer


def test_messages_are_kept_if_nothing_is_said():
    assert read("") == BufferSettings()


def test_nothing_is_kept_where_that_is_said():
    assert read("[buffer]\nkeep = false") is None


def test_a_partition_has_what_the_buffer_has_unless_it_says_otherwise():
    settings = read(
        """
        [buffer]
        size = "1MB"
        overwrite = "value-decay"
        outage = "24s"
        fetch = ["traffic/#", "news", "news"]
        fetch_price = 0.5
        fetch_within = "3s"

        [[buffer.partitions]]
        pattern = "traffic/#"
        filter = "speed >= 50"
        messages = 10

        [[buffer.partitions]]
        overwrite = "lrp"
        """
    )
    assert settings is not None
    first, second = settings.partitions
    assert (first.pattern, first.filter.text, first.messages_max) == ("traffic/#", "speed >= 50", 10)
    assert (first.bytes_max, first.overwrite) == (1_000_000, "value-decay")
    assert (second.pattern, second.filter, second.overwrite) == ("#", EVERYTHING, "lrp")
    assert (settings.outage_s_mean, settings.fetch) == (24.0, ("traffic/#", "news"))
    assert (settings.fetch_price, settings.fetch_within_s) == (0.5, 3.0)


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ('overwrite = "lpr"', "buffer.overwrite", "did you mean lrp"),
        ('size = "0MB"', "buffer.size", "more than zero"),
        ("messages = 0", "buffer.messages", "between 1"),
        ('fetch = "#"', "buffer.fetch", "a list"),
        ('fetch = ["a#"]', "buffer.fetch", "a/#"),
        ('fetch = ["$SYS/#"]', "buffer.fetch", "what clients publish"),
        ('pattern = "a"', "buffer.pattern", "not known"),
        ('[[buffer.partitions]]\nfilter = "speed >"', "buffer.partitions[0].filter", "speed >"),
        ('[[buffer.partitions]]\npattern = "a/#/b"', "buffer.partitions[0].pattern", "no topic pattern"),
        ("[[buffer.partitions]]\nsizes = 3", "buffer.partitions[0].sizes", "did you mean size"),
    ],
)
def test_a_mistake_is_told_with_its_place(text, place, hint):
    with pytest.raises(FileMistakesError) as error:
        read(f"[buffer]\n{text}")
    assert place in str(error.value)
    assert hint in str(error.value)
