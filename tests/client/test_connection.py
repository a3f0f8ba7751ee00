"""Do subscriptions on one client get their own messages, over every transport?"""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mqtt5
import pytest
from tests.broker.listening import new_listener
from tests.broker.talking import new_hub
from tests.client.relays import relayed
from tests.interop.brokers import HOST, WITHIN_S, running_broker

import betimes
from betimes.broker.net.listener import Endpoint
from betimes.client.errors import UnreachableError
from betimes.client.messages import Message
from betimes.model.errors import BetimesError, SettingError

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
OPENSSL = shutil.which("openssl")


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, WITHIN_S))


async def take(source: Any, count: int) -> list[Message]:
    found: list[Message] = []
    async for message in source:
        found.append(message)
        if len(found) == count:
            break
    return found


def test_importing_the_package_loads_no_client():
    code = "import betimes, sys; sys.exit('mqtt5' in sys.modules or 'asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_what_there_is_can_be_had_from_the_package():
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        betimes.conect  # noqa: B018 -- what is asked for


@pytest.mark.live
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_each_subscription_yields_only_its_own(qos):
    async def test():
        with running_broker() as broker:
            async with (
                betimes.connect(f"mqtt://{HOST}:{broker.port}") as client,
                client.subscribe("cars/#", filter="speed > 50 AND kind = 'car'", qos=qos) as fast,
                client.subscribe("cars/a4", qos=qos) as road,
                client.subscribe("trams", max_delay="10s", price=3, qos=qos) as trams,
            ):
                for speed in (40, 61):
                    attributes = {"speed": speed, "kind": "car"}
                    await client.publish("cars/a4", str(speed), attributes=attributes, qos=qos)
                await client.publish("cars/b1", "70", attributes={"speed": 70, "kind": "car"}, qos=qos)
                await client.publish("trams", "9", deadline="10s", importance=3, qos=qos)
                assert [each.payload for each in await take(fast, 2)] == [b"61", b"70"]
                assert [each.payload for each in await take(road, 2)] == [b"40", b"61"]
                (tram,) = await take(trams, 1)
                assert (tram.topic, tram.payload, tram.qos) == ("trams", b"9", qos)
                assert tram.id == "b1:4"
                assert tram.age_s is not None
                assert 0.0 <= tram.age_s < 10.0

    run(test())


@pytest.mark.live
def test_a_message_has_its_attributes():
    async def test():
        with running_broker() as broker:
            async with (
                betimes.connect(f"mqtt://{HOST}:{broker.port}") as client,
                client.subscribe("t") as sub,
            ):
                await client.publish("t", b"\0\xff", attributes={"speed": 61, "kind": "car", "wet": True})
                (message,) = await take(sub, 1)
                assert message.payload == b"\0\xff"
                assert message.attributes == {"speed": 61.0, "kind": "car", "wet": "true"}

    run(test())


@pytest.mark.live
def test_the_same_topic_twice_on_one_client_is_a_mistake():
    async def test():
        with running_broker() as broker:
            async with (
                betimes.connect(f"mqtt://{HOST}:{broker.port}") as client,
                client.subscribe("t", filter="a > 1"),
            ):
                with pytest.raises(SettingError, match="second client"):
                    async with client.subscribe("t", filter="a > 2"):
                        pytest.fail("subscribed")

    run(test())


@pytest.mark.live
def test_a_broker_without_identifiers_is_served_by_topics():
    """What such a broker sends: no identifier, one copy; and one that none of ours asked for."""

    async def test():
        seen: list[mqtt5.SubscribePacket] = []

        async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(mqtt5.ConnAckPacket(subscription_id_available=False).write())
            while len(seen) < 2:
                packet, _ = mqtt5.read(memoryview(await reader.read(1000)))
                assert isinstance(packet, mqtt5.SubscribePacket)
                seen.append(packet)
                codes = [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]
                writer.write(mqtt5.SubAckPacket(packet.packet_id, codes).write())
            for topic in ("a/1", "b/1", "c/1", "a/2"):
                writer.write(mqtt5.PublishPacket(topic, topic.encode()).write())
            await reader.read()
            writer.close()

        async with await asyncio.start_server(broker, HOST, 0) as server:
            address = f"mqtt://{HOST}:{server.sockets[0].getsockname()[1]}"
            async with (
                betimes.connect(address, timeout="300ms") as client,
                client.subscribe("a/+") as first,
                client.subscribe("b/#") as second,
            ):
                assert [each.payload for each in await take(first, 2)] == [b"a/1", b"a/2"]
                (message,) = await take(second, 1)
                assert (message.payload, message.id, message.age_s) == (b"b/1", None, None)
        assert [each.subscription_id for each in seen] == [None, None]

    run(test())


@contextmanager
def certified(folder: Path) -> Iterator[ssl.SSLContext]:
    """Make a certificate for this machine, `ca.pem`, and yield what a server needs to show it."""
    command = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.pem")]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *command, *files, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    yield context


@pytest.mark.live
@pytest.mark.skipif(OPENSSL is None, reason="openssl makes the certificate")
def test_over_tls_only_a_broker_whose_certificate_is_trusted_is_talked_to(tmp_path):
    async def test():
        with certified(tmp_path) as context:
            listener = new_listener(new_hub())
            await listener.start([Endpoint(host=HOST, port=0, tls=context)])
            address = f"mqtts://{HOST}:{listener.ports[0]}"
            try:
                with pytest.raises(UnreachableError, match="certificate"):
                    async with betimes.connect(address):
                        pytest.fail("connected")
                async with (
                    betimes.connect(address, ca=tmp_path / "ca.pem") as client,
                    client.subscribe("t", filter="a = 1") as sub,
                ):
                    await client.publish("t", "sealed", attributes={"a": 1}, qos=1)
                    assert [each.payload for each in await take(sub, 1)] == [b"sealed"]
            finally:
                await listener.stop()

    run(test())


@contextmanager
def mosquitto() -> Iterator[int]:
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    assert MOSQUITTO is not None
    command = [MOSQUITTO, "-p", str(port)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while running.poll() is None:
            try:
                socket.create_connection((HOST, port), 1.0).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        running.kill()
        running.wait()


@pytest.mark.live
@pytest.mark.skipif(MOSQUITTO is None, reason="Mosquitto is not installed")
def test_another_broker_serves_topics_and_attributes():
    async def test():
        with mosquitto() as port:
            async with (
                betimes.connect(f"mqtt://{HOST}:{port}") as client,
                client.subscribe("a/#") as sub,
                client.subscribe("b") as other,
            ):
                await client.publish("a/1", "x", attributes={"speed": 61}, qos=1)
                await client.publish("b", "y", qos=1)
                (message,) = await take(sub, 1)
                assert (message.payload, message.attributes, message.id) == (b"x", {"speed": 61.0}, None)
                assert [each.payload for each in await take(other, 1)] == [b"y"]

    run(test())


@pytest.mark.live
def test_messages_travel_in_websockets():
    async def test():
        paths: list[str] = []
        with running_broker() as broker:
            async with relayed(broker.port, paths) as port:
                for path in ("", "/live"):
                    async with (
                        betimes.connect(f"ws://{HOST}:{port}{path}") as client,
                        client.subscribe("t", qos=1) as sub,
                    ):
                        await client.publish("t", "x" * 2000, qos=1)
                        assert [len(each.payload) for each in await take(sub, 1)] == [2000]
        assert paths == ["/mqtt", "/live"]

    run(test())


@pytest.mark.parametrize(
    ("address", "options", "said"),
    [
        ("mqtt://h/topic", {}, "a topic has no place here"),
        ("mqtt://h", {"ca": "ca.pem"}, "not encrypted"),
        ("mqtts://h", {"ca": "no-such-file.pem"}, "cannot be read"),
        ("mqtt://h", {"password": "x"}, "needs a user name"),
        ("mqtt://h", {"timeout": 0}, "more than 0"),
        ("mqtt://h", {"timeout": "soon"}, "begins with a number"),
    ],
)
def test_a_mistake_is_told_before_anything_is_sent(address, options, said):
    async def test():
        with pytest.raises(BetimesError, match=said):
            async with betimes.connect(address, **options):
                pytest.fail("connected")

    run(test())


@pytest.mark.live
def test_a_mistake_in_a_call_is_told_before_anything_is_sent():
    async def test():
        with running_broker() as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                with pytest.raises(SettingError, match="buffer"):
                    client.subscribe("t", buffer=0)
                with pytest.raises(BetimesError, match=r"speed >> 5\n +\^"):
                    client.subscribe("t", filter="speed >> 5")
                with pytest.raises(SettingError, match="qos"):
                    await client.publish("t", qos=3)
                with pytest.raises(SettingError, match="pattern"):
                    await client.publish("a/#")

    run(test())


@pytest.mark.live
def test_more_than_the_broker_takes_is_refused_before_it_is_sent():
    async def test():
        with running_broker(packet_bytes_max=10_000) as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                with pytest.raises(SettingError, match="takes 10000 at most"):
                    await client.publish("t", b"x" * 10_000, qos=1)
                await client.publish("t", b"x" * 9_000, qos=1)

    run(test())
