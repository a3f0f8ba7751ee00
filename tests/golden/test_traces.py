"""Does every byte that brokers send stay the same? Fixed scripts, on a clock that the scripts move."""

from __future__ import annotations

import pytest
from tests.golden.recording import check, trace_names
from tests.golden.scripts import trace_of


@pytest.mark.parametrize("name", trace_names())
def test_brokers_say_what_was_recorded(name):
    check(name, trace_of(name))
