"""Does a connection live well on a real socket, whatever the other side does?"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import cast

import mqtt5
import pytest
from tests.broker.listening import Keys, calling, ending, new_keys, run, serving, subscribe, until

from betimes.broker.net.socket_line import TRANSPORT_BYTES_ENDURED, LineOwner, SocketLine
from betimes.model.telemetry import Reason

pytestmark = pytest.mark.live


BOTH_WAYS = pytest.mark.parametrize("keys", [Keys(), new_keys()], ids=["plain", "tls"])


def test_what_one_socket_publishes_another_gets():
    async def test():
        async with serving() as listener, calling(listener, "sub") as sub, calling(listener, "pub") as pub:
            await sub.ask(subscribe("a/#"))
            pub.write(*(mqtt5.PublishPacket("a/b", str(number).encode()) for number in range(500)))
            assert [(await sub.read()).payload for _ in range(500)] == [str(n).encode() for n in range(500)]

    run(test())


def test_a_socket_that_is_gone_is_noticed_and_its_will_is_sent():
    async def test():
        will = mqtt5.Will("gone", payload=b"lost")
        async with serving() as listener, calling(listener, "sub") as sub:
            await sub.ask(subscribe("gone"))
            async with calling(listener, "pub", will=will):
                pass
            assert (await sub.read()).payload == b"lost"
            await until(lambda: len(listener.lines) == 1)

    run(test())


@BOTH_WAYS
def test_a_slow_reader_stalls_nobody_and_what_it_misses_is_counted(keys):
    async def test():
        async with (
            serving(queue_bytes_max=1_000_000, tls=keys.server) as listener,
            calling(listener, "slow", tls=keys.client) as slow,
            calling(listener, "quick", tls=keys.client) as quick,
            calling(listener, "pub", tls=keys.client) as pub,
        ):
            for client in (slow, quick):
                await client.ask(subscribe("t"))
            hub = listener.hub
            payload = b"x" * 10_000
            number = 0
            while not hub.counters.lost[Reason.QUEUE_FULL]:  # the slow one reads nothing
                pub.write(mqtt5.PublishPacket("t", payload + str(number).encode()))
                assert (await quick.read()).payload == payload + str(number).encode()
                number += 1
            held = len(hub.sessions["slow"])
            assert held > 10
            pub.write(mqtt5.PublishPacket("t", b"last"))
            assert (await quick.read()).payload == b"last"
            kept = number + 1 - hub.counters.lost[Reason.QUEUE_FULL]
            seen = [(await slow.read()).payload for _ in range(kept)]
            assert len(set(seen)) == kept > held
            pub.write(mqtt5.PublishPacket("t", b"after"))
            assert (await slow.read()).payload == b"after"
            assert (len(hub.sessions["slow"]), hub.counters.lost[Reason.QUEUE_FULL]) == (0, number + 1 - kept)

    run(test())


@BOTH_WAYS
def test_a_client_that_never_reads_its_answers_is_not_read_for_ever(keys):
    async def test():
        async with serving(tls=keys.server) as listener, calling(listener, "flood", tls=keys.client) as flood:
            (line,) = listener.lines.values()
            pings = mqtt5.PingReqPacket().write() * 50_000
            assert line.transport is not None
            while line._is_read:
                flood.writer.write(pings)
                await asyncio.sleep(0)
            assert line.transport.get_write_buffer_size() < 2 * TRANSPORT_BYTES_ENDURED
            async with calling(listener, "other", tls=keys.client) as other:
                assert isinstance(await other.ask(mqtt5.PingReqPacket()), mqtt5.PingRespPacket)
            while not line._is_read:  # it reads after all
                await flood.reader.read(1_000_000)

    run(test())


def test_who_publishes_too_fast_is_read_more_slowly_and_loses_nothing():
    async def test():
        async with serving(publications_per_s_max=100.0) as listener, calling(listener, "sub") as sub:
            await sub.ask(subscribe("t"))
            async with calling(listener, "pub", keep_alive=1) as pub:
                loop = asyncio.get_running_loop()
                started_s = loop.time()
                for number in range(300):
                    packet = mqtt5.PublishPacket(
                        "t", b"%d" % number, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=number + 1
                    )
                    pub.write(packet)
                    await asyncio.sleep(0)
                assert [(await sub.read()).payload for _ in range(300)] == [b"%d" % n for n in range(300)]
                assert [(await pub.read()).reason_code.value for _ in range(300)] == [0] * 300
                # Its silence while it is not read does not count as such.
                assert isinstance(await pub.ask(mqtt5.PingReqPacket()), mqtt5.PingRespPacket)
                assert 1.5 < loop.time() - started_s < 10.0
                assert listener.hub.counters.pauses > 0

    run(test())


def test_who_may_publish_more_slowly_is_still_let_go_in_time():
    async def test():
        async with serving(publications_per_s_max=0.01) as listener, calling(listener, "pub") as pub:
            pub.write(*(mqtt5.PublishPacket("t", b"x") for _ in range(10)))
            await until(lambda: listener.hub.counters.received == 10)
            await listener.stop()
            assert isinstance(await pub.read(), mqtt5.DisconnectPacket)

    run(test())


def test_who_says_nothing_or_nonsense_is_let_go():
    async def test():
        async with serving(connect_within_s=0.05) as listener:
            async with calling(listener) as silent:
                assert await ending(silent) == b""
            async with calling(listener) as noisy:
                noisy.writer.write(b"GET / HTTP/1.1\r\n\r\n")
                assert (await noisy.read()).reason_code.value >= 0x80
                assert await noisy.read() is None
            await until(lambda: not listener.lines)

    run(test())


def test_who_said_hello_while_the_server_was_busy_is_not_taken_for_silent():
    async def test():
        hello = mqtt5.ConnectPacket("late", clean_start=True).write()
        here, there = socket.socketpair()
        async with serving(connect_within_s=0.3) as listener, calling(listener) as caller:
            await until(lambda: len(listener.lines) == 1)
            place = caller.writer.get_extra_info("socket").fileno()

            def busy() -> None:
                asyncio.get_running_loop().remove_reader(there)
                os.write(place, hello)  # past the event loop, which is the server's too
                time.sleep(1.2)

            asyncio.get_running_loop().add_reader(there, busy)
            here.send(b"x")
            assert isinstance(await caller.read(), mqtt5.ConnAckPacket)
        here.close()
        there.close()

    run(test())


def test_over_tls_too_stopping_does_not_wait_for_who_does_not_read():
    async def test():
        keys = new_keys()
        async with (
            serving(tls=keys.server) as listener,
            calling(listener, "polite", tls=keys.client) as polite,
            calling(listener, "stuck", tls=keys.client) as stuck,
        ):
            await stuck.ask(subscribe("t"))
            while listener.hub.sessions["stuck"].ready() is not None:
                polite.write(mqtt5.PublishPacket("t", b"x" * 100_000))
                await asyncio.sleep(0)
            await listener.stop()
            assert not listener.lines
            assert isinstance(await polite.read(), mqtt5.DisconnectPacket)
            assert await polite.read() is None

    run(test())


class AbortedTransport:
    """What uvloop leaves of a transport that was aborted in this turn of the loop."""

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        pass

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        raise RuntimeError("unable to perform operation; the handler is closed")


def test_a_line_whose_transport_was_aborted_just_now_ends_quietly():
    async def end() -> None:
        line = SocketLine(cast(LineOwner, None))
        line.transport = cast(asyncio.Transport, AbortedTransport())
        line.hang_up()
        line.hang_up()  # again

    asyncio.run(end())
