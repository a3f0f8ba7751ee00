"""Does a client get each message once, however many turns its resuming takes and whatever comes between?"""

from __future__ import annotations

import json

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.talking import Client, new_hub

from betimes.broker.core import connection as connecting
from betimes.broker.replay import missed_scan
from betimes.model.buffer_settings import LRP, RANDOM, BufferSettings, PartitionTerms

BEFORE = 600


def resuming(client: Client, *patterns: str) -> None:
    """Send a SUBSCRIBE, and let the broker take its first turn only."""
    filters = [mqtt5.TopicFilter(each, retain_as_published=False) for each in patterns]
    packet = mqtt5.SubscribePacket(1, filters, user_properties=[("resume-after", "b1:0")])
    client.connection.receive(packet.write(), client.now_s)


def numbers(packets: list[object]) -> tuple[list[int], int]:
    """Return the payloads that came, and how many messages are told to be missing at most."""
    found, gone = [], 0
    for each in packets:
        if isinstance(each, mqtt5.PublishPacket):
            if each.topic.startswith("$betimes/gap"):
                gone += json.loads(each.payload)["at_most"]
            else:
                found.append(int(each.payload))
    return found, gone


@pytest.mark.parametrize("policy", [LRP, RANDOM])  # with the log of the newest messages, and without
@given(
    patterns=st.sampled_from([("t/#",), ("t/0", "t/1"), ("t/+", "t/0", "#")]),
    between=st.lists(st.integers(0, 40), max_size=60),
    kept=st.sampled_from([200, 10_000]),
    units=st.integers(1, 60),
)
def test_nothing_is_lost_or_doubled_between_turns(policy, patterns, between, kept, units):
    terms = PartitionTerms(messages_max=kept, overwrite=policy)
    hub = new_hub(buffer=BufferSettings(partitions=(terms,)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(connecting, "TURN_UNITS", units)
        patched.setattr(missed_scan, "LAST_STEP_MESSAGES", 20)
        patched.setattr(missed_scan, "PIECE_MESSAGES", 7)
        anna, ben = Client(hub, "anna"), Client(hub, "ben")
        count = 0
        for count in range(1, BEFORE + 1):
            anna.publish(f"t/{count % 2}", b"%d" % count)
        resuming(ben, *patterns)
        packets, turns = ben.read(), 0
        while ben.connection.is_busy:
            for _ in range(between[turns] if turns < len(between) else 0):
                count += 1
                anna.publish(f"t/{count % 2}", b"%d" % count)
            ben.connection.drained(0.0)
            packets += ben.read()
            turns += 1
        count += 1
        anna.publish(f"t/{count % 2}", b"%d" % count)
        while ben.connection.flow.blocked:
            ben.connection.drained(0.0)
        packets += ben.read()
    found, gone = numbers(packets)
    assert isinstance(packets[0], mqtt5.SubAckPacket)
    assert len(set(found)) == len(found)
    assert found == sorted(found)
    assert len(found) + gone >= count
    if kept == 10_000:
        assert found == list(range(1, count + 1))


def test_resuming_takes_several_turns_and_a_ping_is_answered_between(monkeypatch):
    monkeypatch.setattr(connecting, "TURN_UNITS", 100)
    hub = new_hub(buffer=BufferSettings())
    anna, ben, quiet = Client(hub, "anna"), Client(hub, "ben"), Client(hub, "quiet")
    for number in range(3_000):
        anna.publish("t", b"%d" % number)
    resuming(ben, "t")
    assert ben.connection.is_busy
    assert not ben.read()
    assert [type(each) for each in quiet.ask(mqtt5.PingReqPacket())] == [mqtt5.PingRespPacket]


def test_a_client_that_leaves_between_turns_has_no_subscription(monkeypatch):
    monkeypatch.setattr(connecting, "TURN_UNITS", 100)
    hub = new_hub(buffer=BufferSettings())
    anna, ben = Client(hub, "anna"), Client(hub, "ben", session_expiry_interval=100)
    for number in range(3_000):
        anna.publish("t", b"%d" % number)
    resuming(ben, "t")
    ben.connection.lost(0.0)
    ben.connection.drained(0.0)
    assert not hub.sessions["ben"].subscriptions
    assert not hub.sessions["ben"].owed()
    assert not ben.connection.take_outbox()


def test_packets_behind_a_long_one_wait_for_its_answer(monkeypatch):
    monkeypatch.setattr(connecting, "TURN_UNITS", 100)
    hub = new_hub(buffer=BufferSettings())
    anna, ben = Client(hub, "anna"), Client(hub, "ben")
    for number in range(3_000):
        anna.publish("t", b"%d" % number)
    resuming(ben, "t")
    ben.connection.receive(mqtt5.PingReqPacket().write(), 0.0)
    kinds = []
    while ben.connection.flow.blocked:
        ben.connection.drained(0.0)
        kinds += [type(each) for each in ben.read()]
    assert kinds[0] is mqtt5.SubAckPacket
    assert kinds.count(mqtt5.PublishPacket) == 3_000
    assert kinds.count(mqtt5.PingRespPacket) == 1
