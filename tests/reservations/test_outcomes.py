"""Is a refusal told in words that are true, and is what is called definite so?"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from betimes.reservations.link_accounts import Instead
from betimes.reservations.outcomes import (
    Accepted,
    RefusalReason,
    Refused,
    accepted,
    enough_s,
    refusal,
    refused,
    why,
)
from betimes.reservations.shared_flows import FlowClaim

NO_ROOM = Refused("s", "b1", RefusalReason.NO_BANDWIDTH, True, 12_000, 0.05)
TOO_SLOW = Refused("s", "b1", RefusalReason.TOO_SLOW, True, 0, 0.05)


def claim(publisher="b1", *, bound_s=1.0, fastest_s=0.05, instead=None, is_tried=False):
    return FlowClaim(
        "s",
        publisher,
        f"cars@{publisher}@0|s",
        20,
        bound_s,
        [],
        instead=Instead(7, 0) if instead is None else instead,
        fastest_s=fastest_s,
        is_tried=is_tried,
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (NO_ROOM, "no bandwidth; 12KB/s would fit"),
        (
            NO_ROOM._replace(shared_bytes_per_s=20_000),
            "no bandwidth; 20KB/s would fit, shared with those who have it",
        ),
        (NO_ROOM._replace(room_bytes_per_s=0, is_definite=False), "no bandwidth; nothing fits now"),
        (TOO_SLOW, "too slow; the fastest way takes 50ms"),
        (TOO_SLOW._replace(had_s=0.05), "too slow; the fastest way takes 50ms"),
        (
            TOO_SLOW._replace(had_s=0.15),
            "too slow; the fastest way takes 50ms and has no room; 150ms can be had",
        ),
        (
            TOO_SLOW._replace(had_s=math.inf),
            "too slow; the fastest way takes 50ms, and there is no room either",
        ),
        (refused("s", RefusalReason.NO_ANSWER, is_definite=False), "no answer"),
    ],
)
def test_reasons_are_told_in_words(told, words):
    assert why(told) == words


def test_where_nothing_fits_it_is_told_why_that_may_be():
    assert why(NO_ROOM._replace(room_bytes_per_s=0)).startswith(
        "no bandwidth; nothing fits: links on the way"
    )


def test_what_a_latency_is_told_as_keeps_it():
    assert (enough_s(0.16164), enough_s(0.05)) == (0.1617, 0.05)


def test_the_fastest_way_is_that_of_the_farthest_publisher():
    near, far = claim(bound_s=0.01), claim("b2", bound_s=0.01, fastest_s=0.2)
    told = refusal(near, [near, far])
    assert (told.reason, told.latency_s, told.is_definite) == (RefusalReason.TOO_SLOW, 0.2, True)


@pytest.mark.parametrize(
    ("instead", "is_other_tried", "is_definite"),
    [
        (Instead(7, 0), False, True),
        (Instead(7, 0, is_passing=True), False, False),
        (Instead(7, 0, is_cut=True), False, False),
        (Instead(7, 0), True, False),
    ],
)
def test_what_another_time_or_another_way_of_its_own_might_give_is_not_definite(
    instead, is_other_tried, is_definite
):
    asked, other = claim(instead=instead), claim("b2", is_tried=is_other_tried)
    told = refusal(asked, [asked, other])
    assert (told.reason, told.room_bytes_per_s, told.is_definite) == (
        RefusalReason.NO_BANDWIDTH,
        7,
        is_definite,
    )


def test_what_did_not_answer_and_what_met_no_full_link_is_called_so():
    silent = replace(claim(), all_answered=False)
    assert refusal(silent, [silent]).reason == RefusalReason.NO_ANSWER
    free = claim(instead=Instead(is_short=False))
    assert (refusal(free, [free]).reason, refusal(free, [free]).is_definite) == (RefusalReason.NO_WAY, False)


def test_what_is_held_is_accepted():
    held = claim()
    held.hold("cars@b1@20|s|1", 0.04)
    assert accepted(held) == Accepted("s", "b1", "cars@b1@20|s|1", 20, 0.04)


def test_after_what_was_tried_in_vain_something_less_is_left():
    less = NO_ROOM.without(NO_ROOM._replace(room_bytes_per_s=9_000))
    assert (less.room_bytes_per_s, less.fits_bytes_per_s) == (9_000, 9_000)
    other = NO_ROOM.without(NO_ROOM._replace(room_bytes_per_s=3_000, shared_bytes_per_s=10_000))
    assert (other.fits_bytes_per_s, other.is_sharing_better) == (10_000, True)
    assert other.without(other).fits_bytes_per_s == 3_000
    assert NO_ROOM.without(NO_ROOM).room_bytes_per_s == 11_999
