"""How does one see that something is still going on? A bar on a terminal, a line now and then elsewhere.

Always on standard error, so that what is printed can be piped on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from betimes.terminal.terminal import notices

Advance = Callable[[int, int], None]  # done, in all
PLAIN_EVERY_S = 10.0


@contextmanager
def progress_bar(label: str) -> Iterator[Advance]:
    """Give a function to call with (done, in all) as the work goes on."""
    if not sys.stderr.isatty():
        yield plain_progress(label)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notices(), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def plain_progress(label: str, now_s: Callable[[], float] = time.monotonic) -> Advance:
    """Return an Advance that prints a line at the start, every ten seconds, and at the end."""
    next_s, said = -1.0, -1

    def advance(done: int, total: int) -> None:
        nonlocal next_s, said
        if done < total and (now_s() < next_s or done == said):
            return
        if done >= total and next_s == float("inf"):
            return
        next_s = float("inf") if done >= total else now_s() + PLAIN_EVERY_S
        said = done
        notices().print(f"{label}: {done} of {total}")

    return advance


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show that something of unknown length is under way."""
    if sys.stderr.isatty():
        with notices().status(label):
            yield
    else:
        notices().print(f"{label} ...")
        yield
