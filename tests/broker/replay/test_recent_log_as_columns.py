"""Is what lies side by side what each message says alone?"""

from __future__ import annotations

from functools import partial
from typing import Any

import mqtt5
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.replay.recent_log import MessageColumns
from betimes.language.filters.parse import parse_filter
from betimes.matching.topics import topic_matches
from betimes.model.user_properties import ATTRIBUTES_MAX
from betimes.mqtt.packet_batch import PacketBatch
from betimes.replay.buffer import KeptRun

FILTERS = ["a > 1", "a = 'x'", "a IS NULL", "b = true OR a <= 1", "NOT (a = 'x')", "c BETWEEN 1 AND 2"]
values = st.sampled_from(["1", "2", "1.0", "x", "true", "", "1e400"])
properties = st.lists(st.tuples(st.sampled_from(["a", "b", "$deadline", "$x"]), values), max_size=4)
bodies = st.sampled_from([b"", b'{"a": 2, "c": 1}', b'{"b": true}', b"{"])
packets = st.builds(
    mqtt5.PublishPacket,
    st.sampled_from(["t", "t/u"]),
    bodies,
    content_type=st.sampled_from([None, None, "application/json"]),
    message_expiry_interval=st.sampled_from([None, 0, 5, 70_000]),
    user_properties=properties,
)


def columns(runs: Any) -> MessageColumns:
    built = []
    for number, items in enumerate(runs):
        data = b"".join(each.write() for each in items if each is not None)
        kept = items if None in items else PacketBatch(data, len(items))
        built.append(KeptRun("b1", number * 100, kept, 10, float(number), "anna"))
    return MessageColumns(built, {})


@given(st.lists(st.lists(st.none() | packets, max_size=6), max_size=4), st.sampled_from(FILTERS))
def test_columns_say_what_messages_say(runs, text):
    content_filter = parse_filter(text)
    found = columns(runs)
    alone = [found.publication(place) for place in range(len(found))]
    kept = [each for run in runs for each in run if each is not None]
    assert [each.packet.write() for each in alone] == [each.write() for each in kept]
    places = found.places(partial(topic_matches, "t/+"), content_filter, np.array([-1]), 0).tolist()
    assert places == [
        place
        for place, each in enumerate(alone)
        if each.topic == "t/u" and content_filter.matches(each.attributes())
    ]
    assert found.lives_s.tolist() == [each.deadline_s() for each in alone]
    assert found.void_at_s.tolist() == [each.void_at_s for each in alone]


def test_what_was_refused_still_counts_as_having_come():
    found = columns([[mqtt5.PublishPacket("t", b"1"), None, mqtt5.PublishPacket("t", b"2")]])
    everything = parse_filter("x IS NULL")
    assert found.numbers.tolist() == [0, 2]
    assert found.places(partial(topic_matches, "t"), everything, np.array([-1]), 2).tolist() == [1]


def test_who_has_too_many_attributes_is_read_as_elsewhere():
    many = [(f"n{number}", "1") for number in range(ATTRIBUTES_MAX + 5)]
    found = columns([[mqtt5.PublishPacket("t", b"", user_properties=many)]])
    last = parse_filter(f"n{ATTRIBUTES_MAX} = 1")
    assert found.places(partial(topic_matches, "t"), parse_filter("n0 = 1"), np.array([-1]), 0).tolist() == [
        0
    ]
    assert found.places(partial(topic_matches, "t"), last, np.array([-1]), 0).tolist() == []
