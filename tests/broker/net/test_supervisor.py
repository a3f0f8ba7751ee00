"""Does a background task that fails end the server, and is the reason kept?"""

from __future__ import annotations

import asyncio

from tests.broker.listening import run

from betimes.broker.net.supervisor import Supervisor


async def work(error: Exception | None = None) -> None:
    await asyncio.sleep(0)
    if error is not None:
        raise error


def test_a_task_that_fails_is_told_once_and_logged_by_its_name(caplog):
    async def test():
        told = asyncio.Event()
        tasks = Supervisor(told.set)
        tasks.run(work(), "the good one")
        tasks.run(work(KeyError("lost")), "the bad one")
        tasks.run(work(ValueError("later")), "the next")
        await told.wait()
        await asyncio.sleep(0.01)
        assert isinstance(tasks.failure, KeyError)

    run(test())
    assert [each.getMessage() for each in caplog.records] == [
        "the bad one failed, so the broker ends",
        "the next failed, so the broker ends",
    ]


def test_stopping_cancels_what_still_runs_and_is_no_failure():
    async def test():
        tasks = Supervisor(lambda: None)
        running = tasks.run(asyncio.sleep(1000.0), "for ever")
        await asyncio.sleep(0)
        await tasks.stop()
        assert running.cancelled()
        assert tasks.failure is None
        await tasks.stop()

    run(test())
