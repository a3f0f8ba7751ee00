"""Is the same found in blocks, by columns, as message by message?"""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.delivery.publication import Publication
from betimes.broker.replay import recent_log as replay_log
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.language.filters.parse import parse_filter
from betimes.model.buffer_settings import BufferSettings, PartitionTerms
from betimes.model.filters import EVERYTHING
from betimes.model.positions import Have

FILTERS = ["speed > 2", "speed <= 1 OR kind = 'car'", "NOT (kind = 'car')", "speed IS NULL", "open = true"]
PATTERNS = ["#", "t/0", "t/+", "other"]

contents = st.lists(
    st.sampled_from([("speed", "1"), ("speed", "3"), ("kind", "car"), ("kind", "bus"), ("open", "true")]),
    max_size=2,
    unique_by=lambda each: each[0],
)
messages = st.lists(st.tuples(st.sampled_from(["b1", "b2"]), contents, st.integers(0, 2)), max_size=60)
floors = st.fixed_dictionaries({}, optional={"b1": st.integers(0, 60), "b2": st.integers(0, 60)})


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(replay_log, "BLOCK_MESSAGES", 7)
    monkeypatch.setattr(replay_log, "BLOCK_MESSAGES_MIN", 3)
    monkeypatch.setattr(replay_log, "BLOCKS_MAX", 4)


def filled(published, messages_max: int = 1_000, asked_every: int = 1_000) -> ReplayBuffer:
    """Return a buffer with messages of two origins; what has number 5 comes after what has number 6.

    After so many of them each time, somebody asks for all.
    """
    partition = PartitionTerms(messages_max=messages_max)
    buffer = ReplayBuffer(BufferSettings(partitions=(partition,), fetch=("#",)), "b0", 1)
    numbers = {"b1": 0, "b2": 0}
    for number, (origin, attributes, topic) in enumerate(published):
        numbers[origin] += 1
        swapped = {5: 6, 6: 5}.get(numbers[origin], numbers[origin])
        packet = mqtt5.PublishPacket(f"t/{topic}", b"%d" % number, user_properties=list(attributes))
        publication = Publication(
            packet, packet.topic, born_s=float(number), publisher="anna", origin=origin, number=swapped
        )
        buffer.take(publication, float(number))
        if number % asked_every == asked_every - 1:
            buffer.missed("#", {})
    return buffer


def seen(found) -> list[tuple[str, int, bytes]]:
    publications, gaps = found
    assert all(each.publisher == "anna" for each in publications)
    return [(each.origin, each.number, bytes(each.packet.payload)) for each in publications] + sorted(
        (gap.origin, gap.first, gap.why.encode()) for gap in gaps
    )


@given(
    messages,
    floors,
    st.frozensets(st.integers(0, 60), max_size=5),
    st.sampled_from([EVERYTHING, *map(parse_filter, FILTERS)]),
    st.sampled_from(PATTERNS),
    st.integers(1, 70),
    st.integers(1, 10),
)
def test_a_look_into_blocks_finds_what_a_look_at_each_message_does(
    published, have, above, content_filter, pattern, messages_max, asked_every
):
    buffer = filled(published, messages_max, asked_every)
    had = {origin: Have(floor=floor, above=above) for origin, floor in have.items()}
    quick = seen(buffer.missed(pattern, had, content_filter))
    assert seen(buffer.missed(pattern, had, content_filter)) == quick  # from what was read by then
    buffer._log = None
    assert sorted(seen(buffer.missed(pattern, had, content_filter))) == sorted(quick)
    for origin in ("b1", "b2"):
        numbers = [number for each, number, why in quick if each == origin and why.isdigit()]
        assert numbers == sorted(numbers)


def test_who_is_further_behind_than_the_blocks_reach_is_found_all_the_same():
    buffer = filled([("b1", [("speed", "3")], 0)] * 100)
    assert buffer._log is not None
    assert not buffer._log.reaches({"b1": Have(floor=3)})
    assert buffer._log.reaches({"b1": Have(floor=99)})
    found, gaps = buffer.missed("#", {"b1": Have(floor=3)}, parse_filter("speed > 2"))
    assert ([each.number for each in found], gaps) == (list(range(4, 101)), [])


def test_what_was_laid_out_is_not_laid_out_again_with_what_comes_next():
    buffer = filled([("b1", [], 0)] * 12, asked_every=4)
    assert buffer._log is not None
    assert [each.count for each in buffer._log._blocks] == [4, 4, 4]
