"""Does a hub serve real sockets, whatever they do?"""

from __future__ import annotations

import asyncio
import time

import mqtt5
import pytest
from tests.broker.listening import calling, ending, new_listener, run, serving, subscribe

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.broker.net.listener import Endpoint

pytestmark = pytest.mark.live

Answer, Gone = mqtt5.ConnAckReasonCode, mqtt5.DisconnectReasonCode
PASSWORDS = PasswordFile().with_user("ann", b"secret", Cost(ln=10))


def test_passwords_are_looked_at_in_a_thread_and_once():
    async def test():
        async with serving(access_control=AccessControl(passwords=PASSWORDS)) as listener:
            for password, code in ((b"secret", Answer.SUCCESS), (b"wrong", Answer.BAD_USER_NAME_OR_PASSWORD)):
                async with calling(listener) as caller:
                    caller.write(mqtt5.ConnectPacket("c", username="ann", password=password))
                    await caller.writer.drain()
                    caller.write(mqtt5.PingReqPacket())
                    assert (await caller.read()).reason_code is code
                    answer = await caller.read()
                    assert isinstance(answer, mqtt5.PingRespPacket) == (code is Answer.SUCCESS)

    run(test())


def test_only_so_many_connections_are_taken():
    async def test():
        async with serving(connections_max=1) as listener, calling(listener, "one") as one:
            async with calling(listener) as two:
                assert await ending(two) == b""
            assert isinstance(await one.ask(mqtt5.PingReqPacket()), mqtt5.PingRespPacket)
            assert listener.hub.counters.connections_refused == 1

    run(test())


def test_only_so_many_connections_a_second_are_taken(caplog):
    async def test():
        async with serving(connections_per_s_max=2.0) as listener:
            async with calling(listener, "one"), calling(listener, "two"):
                for _ in range(3):
                    async with calling(listener) as refused:
                        assert await ending(refused) == b""
            assert listener.hub.counters.connections_refused == 3
            await asyncio.sleep(0.6)  # one more may come
            async with calling(listener, "three"):
                pass
            assert sum(int(each.args[0]) for each in caplog.records if "refused" in each.msg) == 3

    run(test())


def test_a_silent_client_is_hung_up_on_by_the_clock():
    async def test():
        async with serving() as listener, calling(listener, "c", keep_alive=1) as caller:
            assert (await caller.read()).reason_code is Gone.KEEP_ALIVE_TIMEOUT
            assert await caller.read() is None

    run(test())


def test_stopping_says_goodbye_and_does_not_wait_for_who_does_not_read():
    async def test():
        async with (
            serving() as listener,
            calling(listener, "polite") as polite,
            calling(listener, "stuck") as stuck,
        ):
            await stuck.ask(subscribe("t"))
            while listener.hub.sessions["stuck"].ready() is not None:
                polite.write(mqtt5.PublishPacket("t", b"x" * 100_000))
                await asyncio.sleep(0)
            await listener.stop()
            assert not listener.lines
            assert (await polite.read()).reason_code is Gone.SERVER_SHUTTING_DOWN
            assert await polite.read() is None

    run(test())


def test_a_port_that_is_taken_is_an_error():
    async def test():
        async with serving() as listener:
            other = new_listener(listener.hub)
            with pytest.raises(OSError, match="in use"):
                await other.start([Endpoint(port=listener.ports[0])])

    run(test())


def test_a_loop_that_was_held_up_is_seen():
    async def test():
        async with serving() as listener:
            await asyncio.sleep(0.3)
            before_s = listener.lag_s
            time.sleep(1.0)
            await asyncio.sleep(0.3)
            assert listener.lag_s > max(before_s, 0.5)

    run(test())


def test_what_the_server_tells_of_itself_is_there_soon_after_its_start():
    async def test():
        async with serving(sys_every_s=10.0) as listener, calling(listener, "c") as caller:
            caller.write(subscribe("$SYS/broker/uptime"))
            await caller.read()
            assert (await caller.read()).payload == b"0 seconds"

    run(test())
