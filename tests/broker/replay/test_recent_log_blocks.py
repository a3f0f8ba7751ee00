"""Is what lies side by side found, judged and written as each message alone would be?"""

from __future__ import annotations

import math
from functools import partial

import mqtt5
import numpy as np
import pytest

from betimes.broker.replay.recent_log import Block, Selection
from betimes.language.filters.parse import parse_filter
from betimes.matching.topics import topic_matches
from betimes.model.filters import EVERYTHING
from betimes.replay.buffer import KeptRun

FLOORS = np.array([0, 0])


def packet(number: int, **options) -> mqtt5.PublishPacket:
    return mqtt5.PublishPacket(f"t/{number % 2}", b"%d" % number, **options)


def run_of(items, origin: str = "b1", first: int = 1, born_s: float = 1.0) -> KeptRun[mqtt5.PublishPacket]:
    return KeptRun(origin, first, items, 100, born_s, "anna")


def block_of(*items) -> Block:
    block = Block(0)
    block.add(run_of(items))
    return block


def portion_of(block: Block, pattern: str = "#", wanted=EVERYTHING) -> Selection:
    columns = block.columns({})
    return Selection(columns, columns.places(partial(topic_matches, pattern), wanted, FLOORS, 0))


def test_what_was_refused_is_never_found():
    selection = portion_of(block_of(packet(1), None, packet(3)))
    assert selection.numbers.tolist() == [1, 3]
    assert [each.number for each in selection.publications()] == [1, 3]


def test_pattern_filter_and_floor_all_count():
    block = block_of(*[packet(number, user_properties=[("a", str(number))]) for number in range(1, 9)])
    columns = block.columns({})
    assert columns.places(
        partial(topic_matches, "t/0"), parse_filter("a > 3"), np.array([5]), 0
    ).tolist() == [5, 7]
    assert columns.places(
        partial(topic_matches, "t/0"), parse_filter("a > 3"), np.array([5]), 6
    ).tolist() == [7]


def test_what_comes_later_is_laid_out_too():
    block = block_of(packet(1))
    assert len(portion_of(block)) == 1
    block.add(run_of([packet(9)], "b2", 9, 3.0))
    selection = portion_of(block)
    assert (selection.publications()[1].number, selection.publications()[1].born_s) == (9, 3.0)
    assert block.ends == {"b1": 1, "b2": 9}
    assert selection.origins.tolist() == [0, 1]


def test_publishers_deadlines_and_the_subscribers_bound_make_messages_late():
    selection = portion_of(block_of(packet(1), packet(2, user_properties=[("$deadline", "500ms")])))
    assert selection.late(2.0, math.inf).tolist() == [False, True]
    assert selection.late(2.0, 0.9).tolist() == [True, True]
    assert [each.number for each in selection.where(~selection.late(2.0, math.inf)).publications()] == [1]


@pytest.mark.parametrize(
    ("odd", "qos", "is_plain"),
    [
        (packet(2), 2, True),
        (packet(2, message_expiry_interval=3), 0, True),
        (packet(2, user_properties=[("$age", "7")]), 0, False),
        (packet(2, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=4), 0, True),
        (packet(2, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=4), 1, False),
    ],
)
def test_only_what_goes_as_it_was_published_is_plain(odd, qos, is_plain):
    assert portion_of(block_of(packet(1), odd)).is_plain(qos) is is_plain


def test_what_has_ended_is_late_for_everybody():
    selection = portion_of(block_of(packet(1, message_expiry_interval=3), packet(2)))
    assert selection.void(3.9).tolist() == [False, False]
    assert selection.void(4.0).tolist() == [True, False]


def test_messages_are_told_as_one_by_one():
    second = packet(2, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=4, message_expiry_interval=70_000)
    selection = portion_of(block_of(packet(1), second))
    written, longest = selection.told(["b1"], 1.25)
    each = [
        publication.packet_for(qos=0, retain=False, now_s=1.25, told=True).write()
        for publication in selection.publications()
    ]
    assert (written, longest) == (b"".join(each), max(map(len, each)))
    assert selection.size_bytes == sum(len(one.packet.write()) for one in selection.publications())


def test_who_was_born_in_the_future_is_not_younger_than_new():
    written, _ = portion_of(block_of(packet(1))).told(["b1"], 0.5)
    told, _ = mqtt5.read(memoryview(written))
    assert isinstance(told, mqtt5.PublishPacket)
    assert dict(told.user_properties)["$age"] == "0"
