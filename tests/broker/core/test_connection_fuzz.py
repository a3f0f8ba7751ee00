"""Does a connection survive whatever comes, and does nobody else notice?

A mutant follows from its number: a failure names the one it stopped at.
"""

from __future__ import annotations

import os
import random
from typing import Any

import mqtt5
import pytest
from tests.broker.mutants import (
    answers,
    body_bytes,
    connects,
    everything,
    good_requests,
    mutant,
    of_length,
    requests,
)
from tests.broker.talking import OPEN_ACCESS, Client, new_connection, new_hub

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.broker.core.connection import Connection
from betimes.broker.core.hub import Hub

MUTANTS = 2_000 if os.environ.get("HYPOTHESIS_PROFILE") == "quick" else 50_000
CONNECT = mqtt5.ConnectPacket("victim", clean_start=True).write()
FAILED = 0x80


def small_hub(access_control: AccessControl = OPEN_ACCESS) -> Hub:
    return new_hub(
        access_control=access_control,
        queue_bytes_max=20_000,
        sessions_max=50,
        retained_max=50,
        subscriptions_max=20,
    )


def guarded() -> AccessControl:
    """Return a gate where the mutants' user has to be proven, and may not do everything."""
    users = PasswordFile().with_user("ann", b"secret", Cost(ln=4))
    access = AccessList.read("topic readwrite #\nuser ann\ntopic read a/#\ntopic write +/b\n", "access")
    return AccessControl(anonymous=True, passwords=users, access=access)


def connected(hub: Hub, now_s: float = 0.0, first: bytes = CONNECT) -> Connection:
    connection = new_connection(hub, now_s=now_s)
    connection.receive(first, now_s)
    return connection


def read_all(connection: Connection) -> list[Any]:
    """Return what is to be sent; everything must be packets."""
    view, found = memoryview(connection.take_outbox()), []
    while view:
        packet, size = mqtt5.read(view)
        found.append(packet)
        view = view[size:]
    return found


def check_goodbye(said: list[Any], sent: bytes) -> None:
    """Who is cut off is told why, except after a DISCONNECT of its own."""
    last = said[-1] if said else None
    if isinstance(last, mqtt5.DisconnectPacket | mqtt5.ConnAckPacket):
        assert last.reason_code.value >= FAILED, sent.hex()
    else:
        assert sent[0] == 0xE0, sent.hex()


@pytest.mark.parametrize("packet", requests(), ids=lambda packet: packet[:12].hex())
def test_a_request_may_come_in_pieces_cut_anywhere(packet):
    whole = connected(small_hub())
    read_all(whole)
    whole.receive(packet, 0.0)
    expected = [each.write() for each in read_all(whole)]
    for cut in range(1, len(packet)):
        connection = connected(small_hub())
        read_all(connection)
        connection.receive(packet[:cut], 0.0)
        assert not connection.closing
        assert read_all(connection) == []
        connection.receive(packet[cut:], 0.0)
        assert [each.write() for each in read_all(connection)] == expected
        assert connection.closing == whole.closing


@pytest.mark.parametrize("packet", connects(), ids=lambda packet: packet[:12].hex())
def test_a_connect_that_breaks_off_anywhere_opens_nothing(packet):
    for cut in range(1, len(packet)):
        hub = small_hub()
        connection = new_connection(hub)
        connection.receive(packet[:cut], 0.0)
        assert (connection.closing, connection.take_outbox(), len(hub.sessions)) == (False, b"", 0)
        connection.lost(1.0)
        assert not hub.sessions


@pytest.mark.parametrize("packet", [*requests(), *answers()], ids=lambda packet: packet[:12].hex())
def test_a_request_that_ends_too_early_is_answered_or_refused(packet):
    for keep in range(body_bytes(packet)):
        connection, short = connected(small_hub()), of_length(packet, keep)
        read_all(connection)
        connection.receive(short, 0.0)
        said = read_all(connection)
        if connection.closing:
            check_goodbye(said, short)


@pytest.mark.parametrize("packet", connects(), ids=lambda packet: packet[:12].hex())
def test_a_connect_that_ends_too_early_is_refused(packet):
    for keep in range(body_bytes(packet)):
        hub = small_hub()
        connection = connected(hub, first=of_length(packet, keep))
        assert connection.closing
        assert not hub.sessions


@pytest.mark.parametrize("packet", answers(), ids=lambda packet: packet[:12].hex())
def test_what_only_a_server_says_is_refused(packet):
    connection = connected(small_hub())
    read_all(connection)
    connection.receive(packet, 0.0)
    assert connection.closing
    check_goodbye(read_all(connection), packet)


@pytest.mark.parametrize("block", range(10))
def test_mutants_break_nothing_and_reach_nobody(block):
    """Many on one hub, in pieces, with time going on; a subscriber gets every message of a publisher."""
    hub = small_hub(guarded() if block % 2 else OPEN_ACCESS)
    watcher, talker = Client(hub, "watcher"), Client(hub, "talker")
    watcher.subscribe("good", qos=1)
    packets, good = everything(), {version: good_requests(version) for version in (4, 5)}
    connection = connected(hub)
    for number in range(block * MUTANTS // 10, (block + 1) * MUTANTS // 10):
        chance, now_s = random.Random(number), 0.01 * number
        if connection.closing:
            connection = new_connection(hub, now_s=now_s)
            if chance.random() < 0.9:
                connection.receive(chance.choice(connects()), now_s)
        for _ in range(chance.randrange(3)):
            connection.receive(chance.choice(good[connection.wire.version]), now_s)
        data = mutant(chance, packets)
        cut = chance.randrange(len(data) + 1)
        try:
            connection.receive(data[:cut], now_s)
            connection.receive(data[cut:], now_s)
            if connection.unproven is not None and chance.random() < 0.5:
                connection.proven(chance.random() < 0.8, now_s)
            if chance.random() < 0.02:
                connection.lost(now_s)
            connection.take_outbox()
            hub.tick(now_s)
        except BaseException as error:  # the codec's panics are no Exceptions
            raise AssertionError(f"mutant {number}: {data.hex()}") from error
        if number % 50 == 0:
            talker.publish("good", str(number).encode(), qos=1)
            assert (b"good", str(number).encode()) in [
                (topic.encode(), payload) for topic, payload in acknowledged(watcher)
            ], f"mutant {number}"
    connection.lost(1e6)
    hub.tick(1e10)  # longer than any session can ask to outlive its connection, but for ever
    assert set(hub.sessions) <= {"watcher", "talker", "c4", "c5", *kept_for_ever(hub)}
    assert len(hub._silent) <= 2


def acknowledged(client: Client) -> list[tuple[str, bytes]]:
    """Return what came, and acknowledge it."""
    found = []
    for packet in client.read():
        if isinstance(packet, mqtt5.PublishPacket):
            found.append((packet.topic, packet.payload))
            if packet.packet_id is not None:
                client.send(mqtt5.PubAckPacket(packet.packet_id))
    return found


def kept_for_ever(hub: Hub) -> list[str]:
    return [name for name, session in hub.sessions.items() if session.expiry_s == float("inf")]
