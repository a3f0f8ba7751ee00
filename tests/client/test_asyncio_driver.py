"""Are the broker's refusals, its silence and its end told as what they are?"""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import mqtt5
import pytest
import uvloop
from tests.client.cutting import relaying
from tests.interop.brokers import HOST, WITHIN_S, running_broker

import betimes
from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.client import core
from betimes.client.errors import (
    ConnectionLostError,
    LoginRefusedError,
    PublicationRefusedError,
    SubscriptionRefusedError,
    UnreachableError,
)
from betimes.model.errors import BetimesError, SettingError
from betimes.mqtt.reason_codes import DisconnectCode

pytestmark = pytest.mark.live


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, WITHIN_S))


async def first(messages: Any) -> Any:
    return await anext(aiter(messages))


async def connect_in_vain(address: str, kind: type[Exception], said: str, **options: Any) -> None:
    with pytest.raises(kind, match=said):
        async with betimes.connect(address, **options):
            pytest.fail("connected")


def test_a_host_that_nobody_answers_at_is_out_of_reach():
    async def test():
        with socket.create_server((HOST, 0)) as closed:
            port = closed.getsockname()[1]
        await connect_in_vain(f"mqtt://{HOST}:{port}", UnreachableError, f"{HOST}:{port}: cannot be reached")
        await connect_in_vain("mqtt://no.such.host.invalid", UnreachableError, "no.such.host.invalid:1883")

    run(test())


def test_a_server_that_says_nothing_is_given_up_in_time():
    async def test():
        with socket.create_server((HOST, 0)) as mute:
            address = f"mqtt://{HOST}:{mute.getsockname()[1]}"
            await connect_in_vain(address, UnreachableError, "timed out", timeout="200ms")

    run(test())


def test_who_gives_up_connecting_leaves_no_connection_behind():
    async def test():
        gone = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            gone.set()
            writer.close()

        async with await asyncio.start_server(say_nothing, HOST, 0) as server:
            address = f"mqtt://{HOST}:{server.sockets[0].getsockname()[1]}"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(betimes.connect(address).__aenter__(), 0.5)
            await gone.wait()

    run(test())


def test_whenever_connecting_is_given_up_nothing_is_left_behind_and_nothing_said(capfd):
    async def connect(port: int) -> None:
        async with betimes.connect(f"mqtt://{HOST}:{port}"):
            pass

    with running_broker() as broker:
        for step in range(60):
            with suppress(TimeoutError):
                asyncio.run(asyncio.wait_for(connect(broker.port), 0.0002 * step))
        gc.collect()
        patience = 500
        while broker.hub.sessions and (patience := patience - 1):
            time.sleep(0.01)
        assert not broker.hub.sessions
    assert capfd.readouterr().err == ""


def test_a_server_that_hangs_up_is_told_at_once():
    async def test():
        async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with await asyncio.start_server(hang_up, HOST, 0) as server:
            address = f"mqtt://{HOST}:{server.sockets[0].getsockname()[1]}"
            await connect_in_vain(address, UnreachableError, "without an answer", timeout="20s")

    run(test())


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (DisconnectCode.IMPLEMENTATION_SPECIFIC_ERROR, LoginRefusedError, "0x83.*not so"),
        (DisconnectCode.SERVER_SHUTTING_DOWN, UnreachableError, "shutting down"),
    ],
)
def test_a_goodbye_that_comes_with_the_welcome_is_told_with_the_brokers_words(code, kind, said, capfd):
    async def test():
        async def welcome_and_goodbye(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            goodbye = mqtt5.DisconnectPacket(reason_code=code, reason_str="not so")
            writer.write(mqtt5.ConnAckPacket().write() + goodbye.write())
            writer.close()

        async with await asyncio.start_server(welcome_and_goodbye, HOST, 0) as server:
            address = f"mqtt://{HOST}:{server.sockets[0].getsockname()[1]}"
            await connect_in_vain(address, kind, said)

    run(test())
    gc.collect()
    assert capfd.readouterr().err == ""


def test_a_wrong_password_is_refused_with_the_brokers_words():
    async def test():
        users = PasswordFile().with_user("ann", b"secret", Cost(ln=4))
        with running_broker(AccessControl(passwords=users)) as broker:
            where = f"{HOST}:{broker.port}"
            await connect_in_vain(f"mqtt://ann:wrong@{where}", LoginRefusedError, "unknown user or wrong")
            await connect_in_vain(f"mqtt://{where}", LoginRefusedError, "0x86")
            async with betimes.connect(f"mqtt://ann:secret@{where}") as client:
                await client.publish("t", "x", qos=1)
            async with betimes.connect(f"mqtt://{where}", user="ann", password="secret") as client:
                await client.publish("t", "x", qos=1)

    run(test())


def test_what_is_not_allowed_is_refused_with_its_reason():
    async def test():
        access = AccessList.read("topic read open\n", "access")
        with running_broker(AccessControl(anonymous=True, access=access)) as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                with pytest.raises(SubscriptionRefusedError) as refused:
                    await first(client.subscribe("closed"))
                assert (refused.value.code, refused.value.reason) == (0x87, "closed: not allowed")
                for qos in (1, 2):
                    with pytest.raises(PublicationRefusedError):
                        await client.publish("open", "x", qos=qos)
                async with client.subscribe("open"):
                    pass

    run(test())


def test_what_is_no_topic_is_a_mistake():
    async def test():
        with running_broker() as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                with pytest.raises(SettingError, match="topic = 'a/#/b'"):
                    await first(client.subscribe("a/#/b"))
                with pytest.raises(SettingError, match="topic = 'a/#'"):
                    await client.publish("a/#", "x")

    run(test())


def test_a_connection_that_breaks_is_told_to_everybody_who_waits():
    async def test():
        with running_broker() as broker:
            async with (
                betimes.connect(f"mqtt://{HOST}:{broker.port}?client_id=c") as client,
                client.subscribe("t") as sub,
                betimes.connect(f"mqtt://{HOST}:{broker.port}?client_id=c"),
            ):
                with pytest.raises(ConnectionLostError, match=r"the connection broke .*taken over"):
                    await first(sub)
                with pytest.raises(ConnectionLostError):
                    await client.publish("t", "x", qos=1)

    run(test())


def test_a_broker_that_falls_silent_is_told_in_time():
    async def test():
        async def connack_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(mqtt5.ConnAckPacket().write())
            await reader.read()
            writer.close()

        async with await asyncio.start_server(connack_only, HOST, 0) as server:
            address = f"mqtt://{HOST}:{server.sockets[0].getsockname()[1]}"
            async with betimes.connect(address, timeout=0.3) as client:
                with pytest.raises(ConnectionLostError, match=r"no answer within 0\.3 s"):
                    await client.publish("t", "x", qos=1)

    run(test())


def test_a_broker_that_reads_no_more_holds_a_publisher_back_until_the_time_limit():
    async def test():
        end = asyncio.Event()

        async def never_reads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(mqtt5.ConnAckPacket().write())
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            await end.wait()
            writer.transport.abort()

        async def publish_for_ever(client: Any, published: list[int]) -> None:
            while True:
                await client.publish("t", bytes(100_000))
                published.append(1)

        published: list[int] = []
        async with await asyncio.start_server(never_reads, HOST, 0) as server:
            address = f"mqtt://{HOST}:{server.sockets[0].getsockname()[1]}"
            async with betimes.connect(address, timeout=0.5) as client:
                with pytest.raises(ConnectionLostError, match=r"no answer within 0\.5 s"):
                    await publish_for_ever(client, published)
                end.set()
        assert len(published) < 900  # the rest would have waited in memory

    run(test())


def test_a_silent_connection_is_kept_alive(monkeypatch):
    async def test():
        with running_broker() as broker:
            async with betimes.connect(f"mqtt://{HOST}:{broker.port}") as client:
                await asyncio.sleep(2.5)  # the broker gives up after 1.5 s of silence
                await client.publish("t", "still here", qos=1)

    monkeypatch.setattr(core, "KEEP_ALIVE_S", 1)
    run(test())


def test_on_another_event_loop_it_is_the_same():
    async def test():
        with running_broker() as broker:
            async with (
                betimes.connect(f"mqtt://{HOST}:{broker.port}") as client,
                client.subscribe("t", qos=2) as subscription,
            ):
                for qos in (0, 1, 2):
                    await client.publish("t", bytes(300_000), qos=qos)
                    assert len((await first(subscription)).payload) == 300_000

    uvloop.run(asyncio.wait_for(test(), WITHIN_S))


def test_a_call_that_is_given_up_leaves_nothing_behind():
    async def test():
        async def connack_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(mqtt5.ConnAckPacket().write())
            await reader.read()
            writer.close()

        async with await asyncio.start_server(connack_only, HOST, 0) as server:
            address = f"mqtt://{HOST}:{server.sockets[0].getsockname()[1]}"
            async with betimes.connect(address) as client:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.subscribe("t").__aenter__(), 0.1)
                assert not client._subscriptions

    run(test())


def test_a_bug_while_reconnecting_does_not_leave_the_program_waiting(monkeypatch, caplog):
    def fail(_client: Any, _end_s: float) -> Any:
        raise RuntimeError("a bug")

    async def test():
        with running_broker() as broker:
            async with relaying(broker.port) as relay:
                address = f"mqtt://{HOST}:{relay.port}"
                async with betimes.connect(address, reconnect="10s") as client, client.subscribe("t") as own:
                    relay.cut()
                    with pytest.raises(BetimesError, match="reconnecting has died: RuntimeError"):
                        await first(own)

    monkeypatch.setattr(core.ClientCore, "_resubscribing", fail)
    run(test())
    assert "reconnecting has died" in caplog.text
