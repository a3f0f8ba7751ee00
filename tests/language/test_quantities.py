"""Does a quantity mean what it says, and is every other text refused with its place?"""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from betimes.language import quantities as module
from betimes.language.quantities import (
    read_duration_s,
    read_frequency_per_s,
    read_rate_kb_per_s,
    read_size_kb,
    read_speed_s_per_kb,
    show_duration,
    show_rate,
    show_size,
)
from betimes.model.errors import TextError

READERS = (read_duration_s, read_size_kb, read_rate_kb_per_s, read_frequency_per_s, read_speed_s_per_kb)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (read_duration_s, "250ms", 0.25),
        (read_duration_s, "10s", 10),
        (read_duration_s, "2m", 120),
        (read_duration_s, "2min", 120),
        (read_duration_s, "1.5h", 5400),
        (read_duration_s, "1d", 86_400),
        (read_duration_s, "30us", 30e-6),
        (read_duration_s, " 1e3 ms ", 1),
        (read_duration_s, ".5s", 0.5),
        (read_duration_s, "0s", 0),
        (read_size_kb, "50KB", 50),
        (read_size_kb, "2MB", 2000),
        (read_size_kb, "512B", 0.512),
        (read_size_kb, "1GB", 1e6),
        (read_rate_kb_per_s, "20KB/s", 20),
        (read_rate_kb_per_s, "6MB/min", 100),
        (read_frequency_per_s, "15/min", 0.25),
        (read_frequency_per_s, "2/s", 2),
        (read_frequency_per_s, "36 / h", 0.01),
        (read_speed_s_per_kb, "75ms/KB", 0.075),
        (read_speed_s_per_kb, "2s/MB", 0.002),
    ],
)
def test_a_quantity_is_read_in_seconds_and_kilobytes(read, text, value):
    assert read(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("read", "text", "place", "problem", "hint"),
    [
        (read_duration_s, "", 0, "empty", "10s"),
        (read_duration_s, "  ", 0, "empty", "10s"),
        (read_duration_s, "fast", 0, "begins with a number", "10s"),
        (read_duration_s, "10", 2, "unit is missing", "10s"),
        (read_duration_s, "-5s", 0, "negative", "10s"),
        (read_duration_s, "-0s", 0, "negative", ""),
        (read_duration_s, "nan", 0, "finite", ""),
        (read_duration_s, "infs", 0, "number", ""),
        (read_duration_s, "inf s", 0, "finite", ""),
        (read_duration_s, "1e999s", 0, "too large", ""),
        (read_duration_s, "1e308h", 0, "too large", ""),
        (read_duration_s, "10sec", 2, "`sec`", "did you mean s?"),
        (read_duration_s, "10 S", 3, "`S`", "did you mean s?"),
        (read_duration_s, "10 minutes", 3, "`minutes`", "did you mean min?"),
        (read_duration_s, "2h30m", 1, "`h30m`", "units: us, ms"),
        (read_duration_s, "10KB", 2, "`KB`", "units: us, ms"),
        (read_duration_s, "5,5s", 1, "`,5s`", ""),
        (read_duration_s, "1" * 500 + "s", 100, "too long", ""),
        (read_size_kb, "50kb", 2, "`kb`", "did you mean KB?"),
        (read_size_kb, "50KiB", 2, "`KiB`", "did you mean KB?"),
        (read_size_kb, "50", 2, "unit is missing", "50KB"),
        (read_rate_kb_per_s, "20KB", 4, "`/`", "20KB/s"),
        (read_rate_kb_per_s, "20/s", 2, "unit is missing", "20KB/s"),
        (read_rate_kb_per_s, "20KB/", 5, "unit is missing", "20KB/s"),
        (read_rate_kb_per_s, "20KB/sec", 5, "`sec`", "did you mean s?"),
        (read_frequency_per_s, "15", 2, "`/`", "15/min"),
        (read_frequency_per_s, "15 times/min", 3, "a number for each", "15/min"),
        (read_frequency_per_s, "15/fortnight", 3, "`fortnight`", "units"),
        (read_speed_s_per_kb, "75ms", 4, "`/`", "75ms/KB"),
        (read_speed_s_per_kb, "75KB/ms", 2, "`KB`", ""),
    ],
)
def test_a_mistake_is_shown_at_its_place_with_a_hint(read, text, place, problem, hint):
    with pytest.raises(TextError) as caught:
        read(text)
    assert caught.value.position == place
    assert problem in caught.value.problem
    assert hint in caught.value.hint


@given(st.text(max_size=20) | st.text(alphabet="0159.eE+-msKMB/hnif ", max_size=10))
@example("٣s")
@example("1e5")
@example("/")
@example("5/")
def test_any_text_is_a_finite_quantity_or_a_text_error(text):
    for read in READERS:
        try:
            value = read(text)
        except TextError:
            continue
        assert math.isfinite(value)
        assert value >= 0


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (show_duration(0), "0s"),
        (show_duration(0.25), "250ms"),
        (show_duration(90), "90s"),
        (show_duration(5400), "90m"),
        (show_duration(7200), "2h"),
        (show_duration(0.00003), "30us"),
        (show_duration(math.inf), "no bound"),
        (show_size(50), "50KB"),
        (show_size(0.512), "512B"),
        (show_size(2000), "2MB"),
        (show_rate(20), "20KB/s"),
        (show_rate(math.inf), "no bound"),
    ],
)
def test_a_quantity_is_shown_as_people_write_it(shown, text):
    assert shown == text


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_what_is_shown_can_be_read_back_to_six_digits(value):
    assert read_duration_s(show_duration(value)) == pytest.approx(value, rel=1e-5)
    assert read_size_kb(show_size(value)) == pytest.approx(value, rel=1e-5)
    assert read_rate_kb_per_s(show_rate(value)) == pytest.approx(value, rel=1e-5)


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(module).failed == 0
