"""Does a token say what is had, and does garbage say where it is wrong?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.language.resume_tokens import ABOVE_MAX, read_resume_token, resume_token
from betimes.model.errors import TextError
from betimes.model.positions import Have


def test_an_id_is_a_token():
    assert read_resume_token("b1:100") == ("b1", Have(floor=100))


def test_a_brokers_name_may_have_colons_in_it():
    assert read_resume_token("a:b:7")[0] == "a:b"


@given(st.text(min_size=1), st.integers(0, 10**16), st.frozensets(st.integers(1, 500)))
def test_a_token_that_is_written_is_read_as_the_same(origin, floor, steps):
    have = Have(floor=floor, above=frozenset(floor + step for step in steps))
    assert read_resume_token(resume_token(origin, have)) == (origin, have)


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "b1",
        ":5",
        "b1:",
        "b1:x",
        "b1:-1",
        "b1:1,",
        "b1:1,0",
        "b1:1,5-3",
        "b1:1,2-",
        "b1:²",
        "b1:" + "9" * 30,
        f"b1:{2**63}",
        f"b1:1,1-{ABOVE_MAX + 1}",
        f"b1:1,1-{ABOVE_MAX},20001",
    ],
)
def test_garbage_is_refused_with_a_way_out(garbage):
    with pytest.raises(TextError, match="fresh start"):
        read_resume_token(garbage)


@given(st.text())
def test_whatever_is_no_token_is_a_text_error(text):
    try:
        origin, have = read_resume_token(text)
    except TextError:
        return
    assert origin
    assert have.floor >= 0
