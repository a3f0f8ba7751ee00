"""Is a message read with all that Betimes tells about it?"""

from __future__ import annotations

import pytest

from betimes.client.messages import (
    Reservation,
    read_gap,
    read_message,
    read_reservation,
    read_reserved,
)
from betimes.model.positions import Gap


def test_attributes_id_and_age_are_told_apart():
    properties = [("speed", "61"), ("kind", "car"), ("$id", "b1:17"), ("$age", "250"), ("$deadline", "10s")]
    message = read_message("t", b"x", properties, qos=1, retain=True)
    assert message.attributes == {"speed": 61.0, "kind": "car"}
    assert (message.id, message.age_s, message.qos, message.retain) == ("b1:17", 0.25, 1, True)


def test_what_another_broker_does_not_tell_is_none():
    message = read_message("t", b"x", [])
    assert (message.attributes, message.id, message.age_s) == ({}, None, None)


@pytest.mark.parametrize("age", ["", "old", "nan", "inf"])
def test_an_age_that_is_no_number_is_none(age):
    assert read_message("t", b"", [("$age", age)]).age_s is None


def test_a_gap_is_read_and_nonsense_is_none():
    told = b'{"origin": "b1", "first": 3, "last": 9, "at_most": 4, "why": "overwritten"}'
    assert read_gap(told) == Gap(origin="b1", first=3, last=9, at_most=4, why="overwritten")
    for nonsense in (b"", b"[]", b"{}", b'{"origin": "b1", "first": "x"}', b"[" * 100_000):
        assert read_gap(nonsense) is None


def test_news_of_a_reservation_are_read():
    told = b'{"topic": "cars", "state": "refused", "why": "no bandwidth", "definite": true}'
    assert read_reservation(told) == Reservation(
        topic="cars", state="refused", why="no bandwidth", is_definite=True
    )
    assert read_reservation(b'{"topic": "cars", "state": "accepted"}') == Reservation(
        topic="cars", state="accepted"
    )
    told = b'{"topic": "cars", "state": "accepted", "bytes_per_s": 20000, "latency_s": 0.1}'
    assert read_reservation(told) == Reservation(
        topic="cars", state="accepted", bytes_per_s=20_000, latency_s=0.1
    )


@pytest.mark.parametrize("told", [[], [("latency", "soon")], [("bandwidth", "20KB/s")]])
def test_a_latency_that_is_not_told_is_none(told):
    assert read_reserved(told)[1] is None


@pytest.mark.parametrize("told", [[], [("bandwidth", "much")], [("bandwidth", "any")], [("latency", "1s")]])
def test_a_bandwidth_that_is_not_told_is_none(told):
    assert read_reserved(told)[0] is None


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"1", b"{}", b'{"topic": 1}', b"\xff", b'{"topic": "t", "state": "s", "latency_s": "x"}'],
)
def test_news_that_make_no_sense_are_none(payload):
    assert read_reservation(payload) is None
