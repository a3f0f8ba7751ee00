"""Do logins take turns by address and by user, so that none waits for another's many?"""

from __future__ import annotations

import asyncio
import time

import mqtt5
import pytest
from tests.broker.listening import calling, run, serving
from tests.broker.talking import new_hub

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.broker.core.connection import Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.net.login_queue import LoginQueue


def waiting(address: str, user: str) -> Connection:
    connection = Connection(PacketHandlers(new_hub()), peer=f"{address}:1", now_s=0.0)
    connection.hold(mqtt5.ConnectPacket("c", username=user))
    return connection


def test_addresses_take_turns_and_users_of_an_address():
    logins = LoginQueue()
    mallory = [waiting("10.0.0.1", "mallory") for _ in range(3)]
    ann, bob = waiting("10.0.0.1", "ann"), waiting("10.0.0.2", "bob")
    for each in (*mallory, ann, bob):
        logins.put(each)
    assert [logins.take() for _ in range(6)] == [mallory[0], bob, ann, mallory[1], mallory[2], None]


def test_who_has_hung_up_is_passed_over():
    logins = LoginQueue()
    gone, there = waiting("::1", "ann"), waiting("::1", "ann")
    gone.closing = True
    for each in (gone, there):
        logins.put(each)
    assert logins.take() is there
    assert logins.take() is None


@pytest.mark.live
def test_a_right_password_is_checked_before_most_of_many_wrong_ones():
    users = PasswordFile().with_user("ann", b"right", Cost(ln=13))
    access_control = AccessControl(passwords=users)

    async def test():
        async with serving(access_control=access_control) as listener:
            guesses = [
                asyncio.create_task(guess(listener, f"guess{number}", "mallory")) for number in range(60)
            ]
            await asyncio.sleep(0.1)
            assert (await guess(listener, "ann", "ann", b"right"))[0] == 0
            ann_s = time.monotonic()
            codes_and_times = await asyncio.gather(*guesses)
        assert {code for code, _ in codes_and_times} == {0x86}
        assert sum(at_s > ann_s for _, at_s in codes_and_times) > 30

    async def guess(listener, client_id, user, password=b"wrong"):
        async with calling(listener) as client:
            client.write(mqtt5.ConnectPacket(client_id, username=user, password=password))
            answer = await client.read()
            return answer.reason_code.value, time.monotonic()

    run(test())
