"""Does `betimes.connect_sync` do what `betimes.connect` does, for programs without an event loop?"""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mqtt5
import pytest
import trustme
from tests.client.cutting import Relay
from tests.client.test_connection import MOSQUITTO, mosquitto
from tests.interop.brokers import HOST, WITHIN_S, Broker, running_broker

import betimes
from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.net.listener import Endpoint
from betimes.client import core
from betimes.client.blocking.client import SyncSubscription
from betimes.client.blocking.socket_exchange import SocketExchange
from betimes.client.errors import (
    ConnectionLostError,
    LoginRefusedError,
    PublicationRefusedError,
    SubscriptionRefusedError,
    UnreachableError,
)
from betimes.model.buffer_settings import BufferSettings
from betimes.model.errors import BetimesError, SettingError
from betimes.model.server_settings import Kind
from betimes.terminal.fleet import free_ports

pytestmark = pytest.mark.live


def url(broker: Broker, query: str = "") -> str:
    return f"mqtt://{HOST}:{broker.port}{query}"


def take(source: Any, count: int) -> list[bytes]:
    return [each.payload for each in itertools.islice(source, count)]


def until(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@contextmanager
def serving(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the address of a server that talks so with its one client."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as found:
                talk(found)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"mqtt://{HOST}:{listener.getsockname()[1]}"
        thread.join(WITHIN_S)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_each_subscription_yields_only_its_own(qos):
    with (
        running_broker() as broker,
        betimes.connect_sync(url(broker)) as client,
        client.subscribe("cars/#", filter="speed > 50 AND kind = 'car'", qos=qos) as fast,
        client.subscribe("cars/a4", qos=qos) as road,
    ):
        for speed in (40, 61):
            client.publish("cars/a4", str(speed), attributes={"speed": speed, "kind": "car"}, qos=qos)
        client.publish("cars/b1", "70", attributes={"speed": 70, "kind": "car"}, deadline="10s", qos=qos)
        assert take(fast, 2) == [b"61", b"70"]
        (first, second) = itertools.islice(road, 2)
        assert (first.payload, second.payload, second.qos) == (b"40", b"61", qos)
        assert second.id == "b1:2"
        assert second.age_s is not None


def test_a_loop_subscribes_and_leaving_it_unsubscribes():
    with running_broker() as broker, betimes.connect_sync(url(broker, "?client_id=c")) as client:
        client.publish("t", "kept", qos=1, retain=True)
        for message in client.subscribe("t"):
            assert message.retain
            assert list(broker.hub.sessions["c"].subscriptions) == ["t"]
            break
        until(lambda: not broker.hub.sessions["c"].subscriptions)


def test_iteration_waits_for_the_next_message_and_a_wait_has_an_end():
    with (
        running_broker() as broker,
        betimes.connect_sync(url(broker)) as client,
        client.subscribe("t") as subscription,
    ):
        began_s = time.monotonic()
        assert subscription.wait("200ms") is None
        assert 0.2 <= time.monotonic() - began_s < 5.0
        threading.Timer(0.2, lambda: client.publish("t", "late")).start()
        assert take(subscription, 1) == [b"late"]
        client.publish("t", "soon", qos=1)
        found = subscription.wait(5)
        assert found is not None
        assert found.payload == b"soon"


def test_a_loop_ends_when_its_client_is_closed_by_another_thread():
    got: list[bytes] = []

    def listen(subscription: SyncSubscription) -> None:
        got.extend(each.payload for each in subscription)

    with running_broker() as broker:
        with betimes.connect_sync(url(broker)) as client, client.subscribe("t", qos=1) as subscription:
            listening = threading.Thread(target=listen, args=(subscription,))
            listening.start()
            client.publish("t", "last", qos=1)
            until(lambda: got == [b"last"])
        listening.join(WITHIN_S)
        assert not listening.is_alive()


@pytest.mark.parametrize(
    ("address", "options", "said"),
    [
        ("mqtt://h/topic", {}, "a topic has no place here"),
        ("mqtt://h", {"ca": "ca.pem"}, "not encrypted"),
        ("mqtt://h", {"password": "x"}, "needs a user name"),
        ("mqtt://h", {"timeout": 0}, "more than 0"),
        ([], {}, "between 1 and 100 brokers"),
    ],
)
def test_a_mistake_is_told_before_anything_is_sent(address, options, said):
    with pytest.raises(BetimesError, match=said), betimes.connect_sync(address, **options):
        pytest.fail("connected")


def test_what_the_broker_rejects_is_told_with_its_reason():
    access = AccessList.read("topic read open\n", "access")
    access_control = AccessControl(anonymous=True, access=access)
    with running_broker(access_control) as broker, betimes.connect_sync(url(broker)) as client:
        with pytest.raises(SubscriptionRefusedError) as refused:
            take(client.subscribe("closed"), 1)
        assert (refused.value.code, refused.value.reason) == (0x87, "closed: not allowed")
        for qos in (1, 2):
            with pytest.raises(PublicationRefusedError, match="Not authorized"):
                client.publish("open", "x", qos=qos)
        with pytest.raises(SettingError, match="topic = 'a/#/b'"):
            take(client.subscribe("a/#/b"), 1)
        with client.subscribe("open"), pytest.raises(SettingError, match="second client"):
            take(client.subscribe("open"), 1)
    with (
        running_broker(AccessControl(anonymous=False)) as broker,
        pytest.raises(LoginRefusedError, match="0x86"),
    ):
        betimes.connect_sync(url(broker)).__enter__()


def test_a_broker_that_is_not_there_or_says_nothing_is_out_of_reach():
    (nobody,) = free_ports(1)
    with pytest.raises(UnreachableError, match="cannot be reached"):
        betimes.connect_sync(f"mqtt://{HOST}:{nobody}").__enter__()
    with socket.create_server((HOST, 0)) as mute:
        address = f"mqtt://{HOST}:{mute.getsockname()[1]}"
        with pytest.raises(UnreachableError, match="timed out"):
            betimes.connect_sync(address, timeout="200ms").__enter__()
    with serving(lambda found: None) as address, pytest.raises(UnreachableError, match="without an answer"):
        betimes.connect_sync(address, timeout="20s").__enter__()


def test_the_first_broker_that_answers_is_taken():
    (nobody,) = free_ports(1)
    with (
        running_broker() as broker,
        betimes.connect_sync([f"mqtt://{HOST}:{nobody}", url(broker)]) as client,
    ):
        client.publish("t", "x", qos=1)


def test_a_connection_that_breaks_is_told_to_every_call_that_waits():
    with (
        running_broker() as broker,
        betimes.connect_sync(url(broker, "?client_id=c")) as client,
        client.subscribe("t") as subscription,
        betimes.connect_sync(url(broker, "?client_id=c")),
    ):
        with pytest.raises(ConnectionLostError, match=r"the connection broke .*taken over"):
            take(subscription, 1)
        for qos in (0, 1):
            with pytest.raises(ConnectionLostError, match="taken over"):
                client.publish("t", "x", qos=qos)


def test_a_broker_that_falls_silent_is_told_in_time():
    def connack_only(found: socket.socket) -> None:
        found.recv(1000)
        found.sendall(mqtt5.ConnAckPacket().write())
        while found.recv(1000):
            pass

    with (
        serving(connack_only) as address,
        betimes.connect_sync(address, timeout=0.3) as client,
        pytest.raises(ConnectionLostError, match=r"no answer within 0\.3 s"),
    ):
        client.publish("t", "x", qos=1)


def test_a_broker_that_reads_no_more_holds_a_publisher_back_until_the_time_limit():
    end = threading.Event()

    def never_reads(found: socket.socket) -> None:
        found.recv(1000)
        found.sendall(mqtt5.ConnAckPacket().write())
        end.wait(WITHIN_S)

    published = itertools.count()
    with serving(never_reads) as address, betimes.connect_sync(address, timeout=0.5) as client:
        with pytest.raises(ConnectionLostError, match=r"no answer within 0\.5 s"):
            publish_for_ever(client, published)
        end.set()
    assert next(published) < 900  # the rest would have waited in memory


def publish_for_ever(client: Any, published: Iterator[int], qos: int = 0) -> None:
    for _ in published:
        client.publish("t", bytes(100_000), qos=qos)


def test_a_flood_to_itself_does_not_stand_still():
    """Both ends have full sockets: whichever only wrote would wait for ever."""
    with (
        running_broker() as broker,
        betimes.connect_sync(url(broker)) as client,
        client.subscribe("t", qos=1, buffer=3_000) as subscription,
    ):
        for _ in range(1_000):
            client.publish("t", bytes(20_000), qos=0)
        client.publish("t", "end", qos=1)
        for message in subscription:
            if message.payload == b"end":
                break


def test_a_program_that_does_something_else_stays_connected_and_its_buffer_is_bounded(monkeypatch):
    monkeypatch.setattr(core, "KEEP_ALIVE_S", 1)
    with (
        running_broker() as broker,
        betimes.connect_sync(url(broker)) as client,
        betimes.connect_sync(url(broker)) as other,
        client.subscribe("t", qos=1, buffer=3) as subscription,
    ):
        for number in range(10):
            other.publish("t", str(number), qos=1)
        time.sleep(2.5)  # the broker gives up after 1.5 s of silence
        assert take(subscription, 3) == [b"7", b"8", b"9"]
        assert client.dropped == 7
        client.publish("t", "still here", qos=1)


def test_threads_share_a_client_and_each_keeps_its_order():
    def publish(client: Any, name: str) -> None:
        for number in range(100):
            client.publish("t", f"{name}{number}", qos=number % 3)

    with (
        running_broker() as broker,
        betimes.connect_sync(url(broker)) as client,
        client.subscribe("t", qos=2) as subscription,
    ):
        threads = [threading.Thread(target=publish, args=(client, name)) for name in "abcdef"]
        for each in threads:
            each.start()
        got = [each.decode() for each in take(subscription, 600)]
        for each in threads:
            each.join(WITHIN_S)
    assert len(set(got)) == 600
    for name in "abcdef":
        own = [int(each[1:]) for each in got if each.startswith(name)]
        for qos in range(3):
            of_quality = [number for number in own if number % 3 == qos]
            assert of_quality == sorted(of_quality)


@contextmanager
def relayed(broker: Broker) -> Iterator[tuple[str, Callable[[], int], Callable[[], None]]]:
    """Yield the address of a relay in front of a broker, how to cut it, and how to close it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    relay = Relay(broker.port)
    asyncio.run_coroutine_threadsafe(relay.open(), loop).result(WITHIN_S)

    async def call(what: Callable[[], Any]) -> Any:
        return what()

    def cut() -> int:
        count: int = asyncio.run_coroutine_threadsafe(call(relay.cut), loop).result(WITHIN_S)
        return count

    def close() -> None:
        asyncio.run_coroutine_threadsafe(call(relay.close), loop).result(WITHIN_S)

    try:
        yield f"mqtt://{HOST}:{relay.port}", cut, close
    finally:
        close()
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.1), loop).result(WITHIN_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WITHIN_S)
        loop.close()


@pytest.mark.parametrize("mode", ["semi-durable", "durable"])
def test_a_subscriber_that_is_cut_off_again_and_again_misses_nothing(mode):
    with (
        running_broker(buffer=BufferSettings()) as broker,
        relayed(broker) as (address, cut, _),
        betimes.connect_sync(url(broker)) as publisher,
        betimes.connect_sync(address, reconnect="20s", session="1h") as client,
        client.subscribe("t", mode=mode, qos=2) as subscription,
    ):
        got: list[bytes] = []
        cuts = 0
        for number in range(300):
            publisher.publish("t", str(number), qos=2)
            if number % 60 == 30:
                cuts += cut()
            found = subscription.wait("5ms")
            got += [] if found is None else [found.payload]
        got += take(subscription, 300 - len(got))
        assert subscription.wait("200ms") is None
        assert got == [str(number).encode() for number in range(300)]
        assert cuts >= 3
        assert not subscription.gaps


def test_a_broker_that_stays_away_is_given_up_and_meanwhile_nothing_is_published():
    with (
        running_broker() as broker,
        relayed(broker) as (address, _, leave),
        betimes.connect_sync(address, reconnect="500ms") as client,
        client.subscribe("t") as subscription,
    ):
        leave()
        with pytest.raises(UnreachableError):
            publish_for_ever(client, itertools.count(), qos=1)
        with pytest.raises(UnreachableError):
            take(subscription, 1)


def test_a_client_that_is_closed_while_it_reconnects_is_closed_at_once():
    with running_broker() as broker, relayed(broker) as (address, _, leave):
        with betimes.connect_sync(address, reconnect="1h") as client, client.subscribe("t"):
            leave()
            until(lambda: client.life is core.Life.RECONNECTING)
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 3.0
        assert not client._thread.is_alive()


def test_messages_travel_in_websockets_and_over_tls(tmp_path):
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(server)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    for scheme, tls, kind in (
        ("ws", None, Kind.WEBSOCKET),
        ("mqtts", server, Kind.MQTT),
        ("wss", server, Kind.WEBSOCKET),
    ):
        options = {} if tls is None else {"ca": tmp_path / "ca.crt"}
        with running_broker(endpoint=Endpoint(host=HOST, port=0, kind=kind, tls=tls)) as broker:
            with (
                betimes.connect_sync(f"{scheme}://{HOST}:{broker.port}", **options) as client,
                client.subscribe("t", qos=1) as subscription,
            ):
                for _ in range(20):
                    client.publish("t", bytes(100_000), qos=0)
                client.publish("t", "end", qos=2)
                assert [len(each) for each in take(subscription, 21)] == [100_000] * 20 + [3]
            if tls is not None:
                with pytest.raises(UnreachableError, match="certificate verify failed"):
                    betimes.connect_sync(f"{scheme}://{HOST}:{broker.port}").__enter__()


def test_ctrl_c_ends_a_program_that_waits_for_messages():
    program = """
import sys, betimes
try:
    with betimes.connect_sync(sys.argv[1]) as client:
        with client.subscribe("t") as subscription:
            print("ready", flush=True)
            for message in subscription:
                pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with running_broker() as broker:
        command = [sys.executable, "-c", program, url(broker, "?client_id=c")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            running.send_signal(signal.SIGINT)
            assert running.stdout.read() == "interrupted\n"
            assert running.wait(WITHIN_S) == 0
        until(lambda: "c" not in broker.hub.sessions)


def test_a_program_that_ends_without_closing_is_not_kept_from_it():
    program = "import sys, betimes; client = betimes.connect_sync(sys.argv[1]).__enter__()"
    with running_broker() as broker:
        ended = subprocess.run([sys.executable, "-c", program, url(broker)], timeout=WITHIN_S, check=False)
        assert ended.returncode == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_of_a_bug_does_not_leave_the_program_waiting(monkeypatch):
    def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    with (
        running_broker() as broker,
        betimes.connect_sync(url(broker)) as client,
        client.subscribe("t") as subscription,
    ):
        monkeypatch.setattr(SocketExchange, "_read", fail)
        client.publish("t", "x")
        with pytest.raises(BetimesError, match="thread has died: RuntimeError"):
            take(subscription, 1)


@pytest.mark.skipif(MOSQUITTO is None, reason="Mosquitto is not installed")
def test_another_broker_serves_topics_and_attributes():
    with (
        mosquitto() as port,
        betimes.connect_sync(f"mqtt://{HOST}:{port}") as client,
        client.subscribe("a/#", qos=2) as subscription,
    ):
        for qos in (0, 1, 2):
            client.publish("a/1", str(qos), attributes={"speed": 61}, qos=qos)
        assert sorted(take(subscription, 3)) == [b"0", b"1", b"2"]


def test_closing_twice_does_nothing_the_second_time():
    with running_broker() as broker, betimes.connect_sync(url(broker)) as client:
        client.close()
        client.close()


def test_a_wait_on_a_subscription_that_is_not_open_is_a_mistake():
    with running_broker() as broker, betimes.connect_sync(url(broker)) as client:
        subscription = client.subscribe("t")
        with pytest.raises(BetimesError, match="is not open"):
            subscription.wait("1s")
        with subscription:
            assert subscription.wait("10ms") is None
        assert subscription.wait("10ms") is None


def test_a_forked_child_leaves_the_connection_of_its_parent_alone():
    with running_broker() as broker:
        program = (
            "import betimes, os, sys\n"
            f"with betimes.connect_sync({url(broker)!r}, timeout='20s') as client:\n"
            "    if os.fork() == 0:\n"
            "        try:\n"
            "            client.publish('t', 'child')\n"
            "        except Exception as error:\n"
            "            print(str(error).splitlines()[0], flush=True)\n"
            "        sys.exit()\n"
            "    os.wait()\n"
            "    client.publish('t', 'parent', qos=1)\n"
            "    print('published')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
    assert (done.stdout, done.stderr) == ("this client belongs to the parent process\npublished\n", "")


def test_a_fresh_start_may_be_said_and_tokens_of_nothing_may_be_given_back():
    with running_broker(buffer=BufferSettings()) as broker, betimes.connect_sync(url(broker)) as client:
        first = client.subscribe("t", mode="semi-durable")
        with client.subscribe("t", mode="semi-durable", after=first.tokens()) as again:
            client.publish("t", "x")
            assert again.wait("10s") is not None
