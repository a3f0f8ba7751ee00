"""Does the name of a flow tell what it is made from, whatever letters that has?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.reservations.flow_names import FlowName, read_flow, source_of, trunk_of

NAMES = st.text(alphabet="ab@|#%/ ü", min_size=1, max_size=8)


@given(NAMES, NAMES, st.integers(1, 10**9), st.none() | NAMES, st.integers(0, 10**6))
def test_a_name_tells_what_it_was_made_from(event_type, publisher, bytes_per_s, home, way):
    flow = FlowName(event_type, publisher, bytes_per_s, home, 0 if home is None else way)
    assert read_flow(flow.name) == flow
    assert trunk_of(flow.name) == flow._replace(home=None, way=0).name
    assert source_of(flow.name) == (event_type, publisher)


@pytest.mark.parametrize(
    "name", ["", "cars", "cars@b1", "cars@b1@many", "a@b@1@2", "a@b@1|c|d", "a@b@1||2", "a@b@1|c|2|3"]
)
def test_other_names_tell_nothing(name):
    assert read_flow(name) is None
