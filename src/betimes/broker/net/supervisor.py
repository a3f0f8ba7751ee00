"""The background tasks of a server. One that fails ends the server: no part of a broker stops unnoticed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)


class Supervisor:
    """Owns tasks; `failed` is called when one of them has raised an exception, which is then `failure`."""

    def __init__(self, failed: Callable[[], None]) -> None:
        self.failure: BaseException | None = None
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Begin a task; the name is what the log calls it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """Cancel all tasks, and wait for their ends."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.critical("%s failed, so the broker ends", task.get_name(), exc_info=error)
            self.failure = self.failure or error
            self._failed()
