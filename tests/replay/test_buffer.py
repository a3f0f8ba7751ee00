"""Does a buffer give everything that it kept, once and in order, and tell of everything else?"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.language.filters.parse import parse_filter
from betimes.matching.topics import topic_matches
from betimes.model.buffer_settings import OVERWRITING_NAMES, BufferSettings, PartitionTerms
from betimes.model.positions import Have
from betimes.replay.buffer import (
    NOT_KEPT,
    OVERWRITTEN,
    TOO_FAR_BACK,
    KeptRun,
    PartitionedBuffer,
    pattern_covers,
)


def buffer_of(*partitions: PartitionTerms, **settings: Any) -> PartitionedBuffer[str]:
    kept = BufferSettings(partitions=partitions or (PartitionTerms(),), **settings)
    return PartitionedBuffer(kept, "b1", 1, pick=random.Random(3).randrange)


def put(
    buffer: PartitionedBuffer[str], origin: str, number: int, topic: str = "t", **attributes: Any
) -> None:
    run = KeptRun(origin, number, [f"{origin}:{number}"], 100, float(number), importance=1 + number % 10)
    buffer.put(run, topic, attributes, float(number))


def items(buffer: PartitionedBuffer[str], pattern: str = "#", **have: Have) -> list[str]:
    return [each.item for each in buffer.missed(pattern, have)[0]]


def test_what_was_missed_comes_in_order_for_each_origin():
    buffer = buffer_of()
    for origin, number in (("b1", 1), ("b2", 7), ("b1", 2), ("b2", 9), ("b2", 8), ("b1", 3)):
        put(buffer, origin, number)
    assert items(buffer, b1=Have(floor=1), b2=Have(floor=7)) == ["b1:2", "b1:3", "b2:8", "b2:9"]


def test_what_somebody_has_above_the_floor_does_not_come_again():
    buffer = buffer_of()
    for number in range(1, 8):
        put(buffer, "b1", number)
    assert items(buffer, b1=Have(floor=2, above=frozenset([4, 6]))) == ["b1:3", "b1:5", "b1:7"]


def test_only_partitions_that_the_pattern_meets_are_asked():
    buffer = buffer_of(PartitionTerms(pattern="a/#", messages_max=1), PartitionTerms(pattern="b/#"))
    for number, topic in enumerate(("a/x", "a/y", "b/x"), 1):
        put(buffer, "b1", number, topic)
    found, gaps = buffer.missed("b/+", {})
    assert [each.item for each in found] == ["b1:3"]
    assert gaps == []
    assert [(gap.first, gap.last, gap.why) for gap in buffer.missed("a/y", {})[1]] == [(1, 1, OVERWRITTEN)]


def test_a_partition_can_be_a_range_of_an_attribute():
    low, high = (
        PartitionTerms(filter=parse_filter(text), messages_max=2) for text in ("speed < 50", "speed >= 50")
    )
    buffer = buffer_of(low, high)
    for number in range(1, 7):
        put(buffer, "b1", number, speed=90.0 if number == 1 else 10.0)
    assert items(buffer) == ["b1:1", "b1:5", "b1:6"]


def test_what_no_partition_takes_is_told_to_whom_it_may_concern():
    buffer = buffer_of(PartitionTerms(pattern="a/#"))
    put(buffer, "b1", 1, "a/x")
    put(buffer, "b1", 2, "c/x")
    assert [(gap.first, gap.last, gap.why) for gap in buffer.missed("#", {})[1]] == [(2, 2, NOT_KEPT)]
    assert buffer.missed("a/#", {})[1] == []
    assert buffer.covers("a/+")
    assert not buffer.covers("+/x")


def test_who_keeps_all_of_another_broker_sees_what_never_came():
    whole, part = buffer_of(fetch=("#",)), buffer_of(fetch=("t/#",))
    for buffer in (whole, part):
        for number in (10, 11, 14):
            put(buffer, "b2", number)
    have = {"b2": Have(floor=10)}
    assert [(gap.first, gap.last) for gap in whole.missed("#", have)[1]] == [(12, 13)]
    assert part.missed("#", have)[1] == []


def test_messages_of_one_go_are_kept_and_overwritten_together():
    buffer = buffer_of(PartitionTerms(messages_max=5))
    assert buffer.takes_runs
    buffer.put_run(KeptRun("b1", 1, ["a", None, "c"], 300, 0.0, "anna"), 0.0)
    buffer.put_run(KeptRun("b1", 4, ["d", "e"], 200, 1.0, "ben"), 1.0)
    found, gaps = buffer.missed("#", {"b1": Have(floor=2)})
    assert [(each.number, each.item, each.source) for each in found] == [
        (3, "c", "anna"),
        (4, "d", "ben"),
        (5, "e", "ben"),
    ]
    assert gaps == []
    buffer.put_run(KeptRun("b1", 6, ["f"], 100, 2.0), 2.0)
    assert [each.item for each in buffer.missed("#", {"b1": Have(floor=2)})[0]] == ["d", "e", "f"]
    (gap,) = buffer.missed("#", {"b1": Have(floor=0)})[1]
    assert (gap.first, gap.last, gap.at_most) == (1, 3, 2)


def test_bytes_are_bounded_too():
    buffer = buffer_of(PartitionTerms(bytes_max=1_000))
    for number in range(1, 100):
        put(buffer, "b1", number)
    assert buffer.size_bytes <= 1_000
    assert buffer.messages == 10
    buffer.put_run(KeptRun("b1", 100, ["huge"], 5_000, 0.0), 0.0)
    assert buffer.messages == 0
    assert buffer.missed("#", {"b1": Have(floor=99)})[1][0].last == 100


def test_two_messages_with_one_number_are_both_overwritten_in_turn():
    buffer = buffer_of(PartitionTerms(messages_max=1))
    for _ in range(3):
        put(buffer, "b2", 5)
    assert items(buffer) == ["b2:5"]


def test_more_origins_than_can_be_remembered_are_not_kept(monkeypatch):
    monkeypatch.setattr("betimes.replay.buffer.ORIGINS_MAX", 2)
    buffer = buffer_of()
    for origin in ("b1", "b2", "b3"):
        put(buffer, origin, 1)
    assert buffer.highest() == {"b1": 1, "b2": 1}
    assert buffer.messages == 2


def test_who_is_away_is_waited_for_but_not_for_ever():
    terms = PartitionTerms(pattern="a/#", messages_max=3, overwrite="disconnection-aware")
    buffer = buffer_of(terms, outage_s_mean=1.0)
    put(buffer, "b1", 9, "a/x")
    buffer.left("anna", "a/+", 9.0)
    put(buffer, "b1", 10, "a/x")
    put(buffer, "b1", 11, "a/x")
    put(buffer, "b1", 12, "a/x")
    assert items(buffer) == ["b1:10", "b1:11", "b1:12"]  # the important one that nobody awaits went first
    buffer.left("ben", "a/x", 30.0)  # anna is given up by now
    put(buffer, "b1", 30, "a/x")
    buffer.returned("ben")
    buffer.returned("nobody")
    assert len(items(buffer)) == 3


@pytest.mark.parametrize("overwrite", OVERWRITING_NAMES)
@given(
    arrivals=st.lists(st.tuples(st.sampled_from(["b1", "b2"]), st.sampled_from(["a", "b"])), max_size=120),
    messages_max=st.integers(1, 40),
    floors=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    swaps=st.lists(st.integers(0, 118), max_size=10),
)
def test_nothing_is_lost_below_the_bound_and_nothing_in_silence_above_it(
    overwrite, arrivals, messages_max, floors, swaps
):
    terms = [
        PartitionTerms(pattern=each, messages_max=messages_max, overwrite=overwrite) for each in ("a", "b")
    ]
    buffer = buffer_of(*terms, fetch=("#",))
    numbers = {"b1": 0, "b2": 0}
    published = []
    for origin, topic in arrivals:
        numbers[origin] += 1
        published.append((origin, numbers[origin], topic))
    for place in swaps:  # some overtake others on their way
        if place + 1 < len(published):
            published[place], published[place + 1] = published[place + 1], published[place]
    for origin, number, topic in published:
        put(buffer, origin, number, topic)
    have = {"b1": Have(floor=floors[0]), "b2": Have(floor=floors[1])}
    found, gaps = buffer.missed("a", have)
    wanted = sorted((o, n) for o, n, topic in published if topic == "a" and n not in have[o])
    got = [(each.origin, each.number) for each in found]
    assert len(got) == len(set(got))
    for origin in have:
        flow = [number for each, number in got if each == origin]
        assert flow == sorted(flow)
    overwritten = [gap for gap in gaps if gap.why == OVERWRITTEN]
    if sum(topic == "a" for _, _, topic in published) <= messages_max:
        assert sorted(got) == wanted
        assert overwritten == []
    assert set(got) <= set(wanted)
    for origin, number in set(wanted) - set(got):
        assert any(gap.origin == origin and gap.first <= number <= gap.last for gap in overwritten)


@given(
    *[st.lists(st.sampled_from(["a", "b", "+"]), min_size=1, max_size=3)] * 2,
    *[st.booleans()] * 2,
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4),
)
def test_a_pattern_that_covers_another_meets_all_its_topics(one, other, open_one, open_other, topic):
    wide, narrow = (
        "/".join([*each, "#"] if more else each) for each, more in ((one, open_one), (other, open_other))
    )
    name = "/".join(topic)
    if pattern_covers(wide, narrow) and topic_matches(narrow, name):
        assert topic_matches(wide, name)


def test_everything_covers_everything_but_the_brokers_own():
    assert pattern_covers("#", "a/#")
    assert pattern_covers("a/#", "a")
    assert pattern_covers("+/b", "a/b")
    assert not pattern_covers("a", "#")
    assert not pattern_covers("#", "$SYS/x")


def test_who_comes_from_far_back_gets_the_newest_and_hears_of_the_rest(monkeypatch):
    monkeypatch.setattr("betimes.replay.buffer.LOOKED_AT_MAX", 3)
    buffer = buffer_of()
    for number in range(1, 11):
        put(buffer, "b1", number)
    found, (gap,) = buffer.missed("#", {"b1": Have(floor=4)})
    assert [each.number for each in found] == [8, 9, 10]
    assert (gap.first, gap.last, gap.at_most, gap.why) == (5, 7, 3, TOO_FAR_BACK)
