"""Can both drivers' ways of waiting stand where the policy asks for one?"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from betimes.client.effects import Answer, Waiter


def put(waiter: Waiter) -> bool:
    was_done = waiter.done()
    waiter.set_result(Answer(0x87, "no"))
    return not was_done and waiter.done()


def test_a_future_is_a_waiter_and_so_is_that_of_threads():
    async def of_asyncio() -> None:
        waiter: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        assert put(waiter)
        assert waiter.result() == Answer(0x87, "no")

    asyncio.run(of_asyncio())
    waiter: Future[Answer | None] = Future()
    assert not waiter.done()
    assert put(waiter)
    assert waiter.done()
    assert waiter.result() == Answer(0x87, "no")
