"""Does aiomqtt work with the broker, in both versions of MQTT?"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import aiomqtt
import pytest
from aiomqtt import ProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.interop.brokers import HOST, WITHIN_S, Broker, running_broker

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile

pytestmark = pytest.mark.live

BOTH = pytest.mark.parametrize("version", [ProtocolVersion.V5, ProtocolVersion.V311])


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, WITHIN_S))


def client(broker: Broker, name: str, version: ProtocolVersion = ProtocolVersion.V5, **options: Any) -> Any:
    return aiomqtt.Client(HOST, broker.port, identifier=name, protocol=version, **options)


def with_user_properties(kind: int, **values: str) -> Properties:
    found = Properties(kind)
    found.UserProperty = list(values.items())
    return found


async def take(source: Any, count: int) -> list[Any]:
    found = []
    async for message in source.messages:
        found.append(message)
        if len(found) == count:
            break
    return found


@BOTH
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_in_order_with_every_quality(version, qos):
    async def test():
        with running_broker() as broker:
            async with client(broker, "sub", version) as sub, client(broker, "pub", version) as pub:
                await sub.subscribe("a/#", qos=qos)
                for number in range(30):
                    await pub.publish("a/b", str(number), qos=qos)
                got = await take(sub, 30)
                assert [int(each.payload) for each in got] == list(range(30))
                assert {each.qos for each in got} == {qos}

    run(test())


@BOTH
def test_a_will_and_a_retained_message_reach_whom_they_should(version):
    async def test():
        with running_broker() as broker:
            async with client(broker, "watcher", version) as watcher:
                await watcher.subscribe("state", qos=1)
                will = aiomqtt.Will("state", "lost", qos=1, retain=True)
                with suppress(aiomqtt.MqttError):  # what aiomqtt says of a socket that was shut
                    async with client(broker, "c", version, will=will) as gone:
                        gone._client.socket().shutdown(socket.SHUT_RDWR)
                (said,) = await take(watcher, 1)
                assert (said.payload, said.retain) == (b"lost", False)
                async with client(broker, "late", version) as late:
                    await late.subscribe("state")
                    (kept,) = await take(late, 1)
                    assert (kept.payload, kept.retain) == (b"lost", True)

    run(test())


def test_a_content_filter_and_its_refusal():
    async def test():
        with running_broker() as broker:
            async with client(broker, "sub") as sub, client(broker, "pub") as pub:
                asked = with_user_properties(PacketTypes.SUBSCRIBE, filter="speed >> 50")
                refused = await sub.subscribe("cars", properties=asked)
                assert refused[0].value == 0x83
                asked = with_user_properties(PacketTypes.SUBSCRIBE, filter="speed > 50")
                granted = await sub.subscribe("cars", qos=1, properties=asked)
                assert granted[0].value == 1
                for speed in ("40", "61", "50", "51"):
                    sent = with_user_properties(PacketTypes.PUBLISH, speed=speed)
                    await pub.publish("cars", speed, qos=1, properties=sent)
                assert [each.payload for each in await take(sub, 2)] == [b"61", b"51"]

    run(test())


@BOTH
def test_a_wrong_password_is_refused(version):
    async def test():
        users = PasswordFile().with_user("ann", b"secret", Cost(ln=4))
        with running_broker(AccessControl(passwords=users)) as broker:
            with pytest.raises(aiomqtt.MqttError):
                async with client(broker, "c", version, username="ann", password="wrong"):
                    pass
            async with client(broker, "c", version, username="ann", password="secret") as right:
                await right.publish("t", "x", qos=1)

    run(test())


def test_a_session_is_resumed():
    async def test():
        expiry = Properties(PacketTypes.CONNECT)
        expiry.SessionExpiryInterval = 1000
        with running_broker() as broker:
            async with client(broker, "sub", clean_start=False, properties=expiry) as sub:
                await sub.subscribe("t", qos=1)
            async with client(broker, "pub") as pub:
                await pub.publish("t", "meanwhile", qos=1)
            async with client(broker, "sub", clean_start=False, properties=expiry) as sub:
                assert (await take(sub, 1))[0].payload == b"meanwhile"

    run(test())
