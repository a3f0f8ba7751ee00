"""Do bytes go both ways without that any thread waits in a send?"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import mqtt5
import pytest

from betimes.client.addresses import Address
from betimes.client.blocking.socket_exchange import SocketExchange
from betimes.client.broker_connection import BrokerConnection
from betimes.mqtt.client_protocol import ClientProtocol

pytestmark = pytest.mark.live


@contextmanager
def exchange(taken: list[Any]) -> Iterator[tuple[SocketExchange, socket.socket]]:
    """Yield one that is let in, and the broker's end of its socket."""
    ours, theirs = socket.socketpair()
    connection = BrokerConnection(
        Address(),
        ClientProtocol(mqtt5.ConnectPacket("c")),
        timeout_s=1.0,
        new_waiter=Future,
        take=taken.append,
        tell_end=lambda: None,
    )
    lock = threading.RLock()
    found = SocketExchange(ours, connection, lock)
    connection.start(time.monotonic())
    with theirs:
        found.flush()
        assert theirs.recv(1000) == mqtt5.ConnectPacket("c").write()
        theirs.sendall(mqtt5.ConnAckPacket().write())
        found.turn(1.0)
        yield found, theirs
        found.close()


def test_what_the_socket_does_not_take_waits_and_goes_out_later():
    with exchange([]) as (found, theirs):
        for _ in range(100):
            found.connection.publish("t", bytes(50_000), [], qos=0, retain=False)
        found.flush()
        assert not found.written.is_set()
        came = 0
        while not found.written.is_set():
            came += len(theirs.recv(1_000_000))
            found.turn(1.0)
        theirs.setblocking(False)
        while came < 100 * 50_000:
            came += len(theirs.recv(1_000_000))


def test_a_turn_reads_and_can_be_woken():
    taken: list[Any] = []
    with exchange(taken) as (found, theirs):
        theirs.sendall(mqtt5.PublishPacket("t", b"x").write())
        found.turn(1.0)
        assert [each.payload for each in taken] == [b"x"]
        threading.Timer(0.1, found.wake).start()
        began_s = time.monotonic()
        found.turn(30.0)
        assert time.monotonic() - began_s < 10.0


def test_the_end_of_the_socket_is_the_end_of_the_connection():
    with exchange([]) as (found, theirs):
        theirs.close()
        found.turn(1.0)
        assert found.connection.is_over()
        found.turn(1.0)  # nothing is left to do
    with exchange([]) as (found, theirs):
        theirs.close()
        for _ in range(2):
            found.connection.is_over() or found.connection.publish("t", b"x", [], qos=0, retain=False)
            found.flush()
        assert found.connection.is_over()
        assert found.written.is_set()
