"""Is every signal read as it was written, and is nothing else believed?"""

from __future__ import annotations

import contextlib
import doctest
import json
import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model.errors import TextError
from betimes.reservations import signals as signal_texts
from betimes.reservations.link_accounts import Instead
from betimes.reservations.overlay.coordinates import Coordinate
from betimes.reservations.signals import (
    TEXT_LENGTH_MAX,
    Denied,
    Extend,
    Granted,
    Hop,
    Invite,
    Offer,
    Offers,
    Refresh,
    Reserve,
    Signal,
    StepBack,
    Subscribe,
    Taken,
    Visit,
    read_signal,
    write_signal,
)

names = st.text(min_size=1, max_size=8)
times_s = st.floats(0.0, 1e3) | st.just(math.inf)
counts = st.integers(0, 10**9)
coordinates = st.builds(
    Coordinate, st.tuples(*[st.floats(-1.0, 1.0)] * 3), st.floats(1e-5, 1.0), st.floats(0.01, 1.0)
)
hops = st.lists(st.builds(Hop, names, times_s, counts), max_size=4).map(tuple)
some_names = st.lists(names, max_size=4).map(tuple)
offers = st.lists(st.builds(Offer, names, counts, coordinates, hops, counts), max_size=3).map(tuple)
insteads = st.builds(Instead, counts, counts, st.booleans(), st.booleans(), st.booleans())
invites = st.builds(Invite, names, counts, names, names, coordinates, times_s, some_names)
visits = st.lists(st.builds(Visit, names, times_s), max_size=4).map(tuple)
extends = st.builds(Extend, invites, times_s, some_names, visits, st.booleans(), insteads)
signals = st.one_of(
    st.builds(Subscribe, names, counts, names, counts, hops),
    st.builds(Offers, names, counts, counts, some_names, offers),
    st.builds(Reserve, names, counts, names, times_s, st.none() | some_names, some_names),
    st.builds(Granted, names, times_s),
    st.builds(Denied, names, insteads, st.booleans()),
    st.builds(Refresh, some_names),
    st.builds(Taken, names),
    st.builds(StepBack, extends, st.booleans()),
    invites,
    extends,
)
told = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=12,
)


@given(signals)
def test_what_is_written_is_read_again(signal):
    read = read_signal(write_signal(signal))
    assert read == signal
    assert type(read) is type(signal)


@given(st.sampled_from([kind.__name__ for kind in get_args(Signal)]), told)
def test_anything_else_is_refused_and_no_other_error_comes(kind, fields):
    with contextlib.suppress(TextError):
        read_signal(json.dumps([kind, fields]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSON"),
        ("[" * 100_000, "JSON"),
        ("x" * (TEXT_LENGTH_MAX + 1), "too long"),
        ('["Shout", []]', "no such signal"),
        ('["Granted", ["f"]]', "2 fields"),
        ('["Granted", ["f", -1]]', "a number from 0"),
        ('["Granted", ["f", NaN]]', "a number"),
        ('["Granted", ["", 1]]', "a text of 1"),
        ('["Granted", [5, 1]]', "a text of 1"),
        ('["Refresh", ["f"]]', "a list"),
        ('["Withdraw", ["cars", true, "a", 3]]', "a whole number"),
        ('["Withdraw", ["cars", 1, "a", 1.5]]', "a whole number"),
    ],
)
def test_what_is_wrong_is_said(text, words):
    with pytest.raises(TextError, match=words):
        read_signal(text)


def test_a_place_beyond_the_world_is_not_believed():
    invite = Invite("f", 1, "p", "s", Coordinate(), 1.0, ())
    far = json.loads(write_signal(invite))
    far[1][4][0][0] = 1e9
    with pytest.raises(TextError, match="a number from -1000 to 1000"):
        read_signal(json.dumps(far))


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(signal_texts).failed == 0
