"""Is a subscriber that may come back told of what it lost, in its place, and of nothing else?"""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.broker.replay.test_buffer import keeping_hub
from tests.broker.replay.test_resume import resume
from tests.broker.talking import Client

from betimes.broker.delivery.gaps import ORIGINS_MAX, MissedMessages, gap_message
from betimes.broker.delivery.publication import Publication
from betimes.model.positions import Gap
from betimes.model.telemetry import Reason

SIZE = 1_000
ROOM = 4  # messages that fit into the queue, about


def story(client: Client) -> list[object]:
    """Return the numbers that came, and the gaps, as (first, last, at most)."""
    found: list[object] = []
    for each in client.read():
        if each.topic.startswith("$"):
            gap = json.loads(each.payload)
            assert (gap["origin"], gap["why"]) == ("b1", "queue full")
            found.append((gap["first"], gap["last"], gap["at_most"]))
        else:
            found.append(int(dict(each.user_properties)["$id"].rpartition(":")[2]))
    return found


def follow(client: Client) -> list[object]:
    """Take all that waits, as a socket that takes more does."""
    found = story(client)
    while client.connection.flow.blocked:
        client.connection.drained(1.0)
        found += story(client)
    return found


@given(st.lists(st.integers(min_value=1, max_value=12), min_size=1, max_size=6))
def test_what_does_not_fit_into_a_queue_is_told_between_what_does(bursts):
    hub = keeping_hub(queue_bytes_max=ROOM * (SIZE + 500))
    anna, ben = Client(hub, "anna"), Client(hub, "ben")
    resume(ben, "now")
    told: list[object] = []
    for burst in bursts:
        ben.connection.flow.blocked = True
        for _ in range(burst):
            anna.publish("t", b"x" * SIZE)
        told += follow(ben)
    anna.publish("t", b"x")
    told += follow(ben)
    expected = 1
    for each in told:  # nothing is left out, and nothing comes twice or in another order
        first, last, at_most = each if isinstance(each, tuple) else (each, each, 1)
        assert (first, at_most) == (expected, last - first + 1)
        expected = last + 1
    assert expected == sum(bursts) + 2
    lost = sum(each[2] for each in told if isinstance(each, tuple))
    assert hub.counters.lost[Reason.QUEUE_FULL] == lost


def test_who_cannot_come_back_is_told_of_no_gap():
    hub = keeping_hub(queue_bytes_max=ROOM * SIZE)
    anna, ben = Client(hub, "anna"), Client(hub, "ben")
    ben.subscribe("#")
    ben.connection.flow.blocked = True
    for _ in range(20):
        anna.publish("t", b"x" * SIZE)
    ben.connection.drained(1.0)
    assert {topic for topic, _ in ben.got()} == {"t"}


def test_a_client_s_name_is_one_level_of_the_topic():
    gap = Gap(origin="b1", first=1, last=2, at_most=2, why="overwritten")
    assert gap_message("b1", "a/b c", gap, 0.0).topic == "$betimes/gap/a%2Fb%20c"


def test_so_many_origins_are_told_apart_and_the_broker_s_own_messages_do_not_count():
    missed = MissedMessages("b1", "ben")
    packet = gap_message("b1", "ben", Gap(origin="x", first=1, last=1, at_most=1), 0.0).packet
    missed.note(Publication(packet, "$SYS/uptime", born_s=0.0, origin="b1", number=1))
    assert not missed
    for number in range(ORIGINS_MAX + 10):
        missed.note(Publication(packet, "t", born_s=0.0, origin=f"b{number}", number=1))
    assert len(missed.take(0.0)) == ORIGINS_MAX
    assert not missed
